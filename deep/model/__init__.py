"""The fitted chain: voters, ensembler and calibrator, chosen and fitted on training data alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

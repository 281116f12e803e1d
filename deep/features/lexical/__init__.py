"""Lexical labeling functions: what words alone tell, at once, for nothing, and without a model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

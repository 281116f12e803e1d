"""Any judge at the stages of the four papers: DEEP's sets, FECT, PROBE and CogniBench; `deep panel compare`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

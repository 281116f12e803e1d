"""Which fit for which labels: none, a target's own, one or two other datasets, or more."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""How far P can be trusted on a dataset never seen: the pool beside its rivals, each dataset held out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

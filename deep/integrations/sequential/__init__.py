"""Judges asked one by one: their order, when to stop, what that saves on held-out datasets, texts scored that way."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

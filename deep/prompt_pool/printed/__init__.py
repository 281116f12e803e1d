"""The prompts that papers print, cut out of the user's own copy of the paper."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

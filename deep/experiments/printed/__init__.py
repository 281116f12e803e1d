"""The prompts that the papers print, cut out of the user's own copy, and the judges that ask them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""What the papers print: their prompts, cut out of the user's own copy, and their tables beside those of a run."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Read what a judge replied: where an answer may stand, what it says, and what is none (docs/replies.md)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

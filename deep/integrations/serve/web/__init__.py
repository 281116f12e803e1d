"""Common to all servers of deep: the guard, one shape of errors, and how they start and end."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

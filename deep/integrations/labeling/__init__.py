"""Labels by people: which items, who gives them, and the page on which they do."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

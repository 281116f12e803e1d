"""A new dataset: its class prior, few labels, intervals, drift, which items to label."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

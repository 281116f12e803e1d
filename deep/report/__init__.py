"""The report: one HTML file of what a run, a model or votes show, with an item browser."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

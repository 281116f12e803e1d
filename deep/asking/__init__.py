"""Asking judges: examples and judges make a plan, the ledger runs it, judgments come out as a table of votes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

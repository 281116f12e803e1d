"""Pairs: which of two answers is better, asked in both orders, with each judge's bias and a ranking of systems."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

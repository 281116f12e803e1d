"""P(consistent) of a claim over HTTP: a fitted model with its judges behind ``POST /v1/check``."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

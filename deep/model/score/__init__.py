"""From the rows of a dataset to log-odds and P(consistent), by the arrays that a fit leaves."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

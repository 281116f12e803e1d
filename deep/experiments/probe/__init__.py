"""PROBE: the builder of the benchmark, the measures of every step of a detector, and training data of both."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""What studies measure where a dataset is held out: cells, rivals, paired tests, tables and figures of runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

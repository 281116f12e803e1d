"""deep: one calibrated P(consistent) from the votes of several weak judges.

Names are imported on first use, so that ``import deep`` and ``deep --help`` cost next to nothing.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

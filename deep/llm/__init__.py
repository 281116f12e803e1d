"""Many calls to a paid endpoint: nothing lost, nothing bought twice, and the bill known.

A :class:`Runner` takes a lazy stream of :class:`Request` through a fixed pool of workers; a :class:`Ledger`
remembers what was asked, answered and paid, so that the same command again asks only what is missing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

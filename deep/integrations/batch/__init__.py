"""The Batch API, and batch files that other engines run: requests that are answered hours later, in the same ledger."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

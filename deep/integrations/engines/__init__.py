"""Engines beyond one machine: moments counted in parts or in SQL, and batches for DuckDB, Polars, Spark and Ray."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Engines beyond one machine: moments counted in parts or in SQL, batches for DuckDB, Polars, Spark and Ray, tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

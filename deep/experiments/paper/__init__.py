"""The DEEP paper's tables and figures from any votes, beside its printed figures.

For instance:

  deep paper --out paper
      every table and Figure 4 on the embedded, simulated votes
  deep paper --votes votes.parquet --scores scores.parquet --out paper
      the same from your own votes, and Figures 1 and 2 from encoder scores
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

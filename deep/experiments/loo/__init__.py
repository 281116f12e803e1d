"""Leave one dataset out: choose, fit and calibrate on the others, measure on it.

For instance:

  deep loo --test aggrefact
      hold out AggreFact-XSUM on the embedded, simulated votes
  deep loo --test all --votes votes.parquet --scores scores.parquet
      hold out each of your datasets in turn, with encoder scores as baselines
  deep loo --test all --few --votes votes.parquet
      and with one, two or three training datasets, each rival on the same draws; with 5 to 100 labels of the new one
  deep loo --test mine --votes labeled.csv,mine.csv --sizes 3,5 --json
      score a dataset without labels from labeled ones; results.json to stdout
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

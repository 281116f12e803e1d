"""Transfer: each dataset held out in turn, the stack beside its rivals.

For instance:

  deep transfer --votes votes.parquet --scores scores.parquet
      hold out each labeled dataset in turn; scores enter as soft votes
  deep transfer --votes a.csv,b.csv,c.csv,d.csv --draws 50 --json
      votes alone; results.json to stdout
  deep transfer --votes panel-a.parquet panel-b.parquet --training-datasets 1 2 3 4 6 all --draws 20
      every rival on several panels, with few and many training datasets
  deep transfer --simulated
      four simulated worlds with known truth
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

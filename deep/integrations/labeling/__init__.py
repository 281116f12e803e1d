"""Label the items that are worth it, on a page of this machine: by keyboard, alone or with others, and blind to votes.

Every answer is on disk before the next item shows, and the same command goes on where it ended. Beside LABELS.csv (the
label of most people for each item) stand the labels of each person, and the log of everything.

For instance:

  deep label votes.parquet --examples claims.csv --n 30
      thirty items at random; their labels in labels.csv, for `deep fit votes.parquet --labels labels.csv`
  deep label votes.parquet --n 60 --double 20 --person Ann --model model.json
      sixty, twenty of them for two people, whose agreement is shown; P by a model in place of the votes alone
  deep label list model.json --votes votes.parquet --n 50 --out to-label.csv
      no page: one item from each of fifty strata by P, into a file with an empty column for the labels
  deep label guideline > worksheet.md
      the steps decompose, decouple and detach, for people who label on paper
  deep label agreement labels.annotations.csv
      Cohen's and Fleiss' kappa, Krippendorff's alpha, and the items on which people disagree
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

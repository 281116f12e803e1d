"""The DEEP paper's tables and figures from any votes, beside its printed figures.

Votes are a table of dataset, item_id and label, and a column a judge (1, 0 or empty); every row needs its label, and
there must be two datasets or more, since each is held out in turn. A dataset stands in the same column as a printed
one where it has the name that the tables print: aggrefact-xsum, halueval-summarization, tofueval-mediasum, tofueval-
meetingbank. Others get columns of their own. With --n-boot 200 it takes half a minute of processor time for four
datasets by seven judges, one and a half for twelve by nine.

For instance:

  deep paper --out paper
      every table and Figure 4 on the embedded, simulated votes
  deep paper --votes votes.parquet --scores scores.parquet --out paper
      the same from your own votes, and Figures 1 and 2 from encoder scores
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

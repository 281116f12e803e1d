"""FECT: judges of interpretive claims under four prompts and repeated runs.

The same command again asks only what is missing. Exit status: 0 done, 2 an error, 3 the budget is reached,
130 interrupted.

For instance:

  deep fect --data fect --llm gpt-4o --runs 10 --dry-run
      how many calls and dollars it would take; nothing is sent
  deep fect --data fect --llm gpt-4o o1 --reasoning o1 --budget 50 --out fect
      Tables 2, 4 and 5, Figures 5, 7 and 8, and self-consistency over ten runs
  deep fect --data claims.csv --llm tiny --prompt 3d-ttc --runs 3 --output xml
      one prompt on claims of your own, each with a label
  deep fect --data fect --llm o1 --prompt printed/fect-printed-3d-ttc.toml
      the paper's own prompt, which `deep prompts import` cuts out of your copy of the paper
  deep fect --data fect --votes votes.parquet --model-file model.json --encoder NAME --lexical all
      a row for every voter, for the model's P(consistent), and for judges that need no LLM
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""CogniBench: who finds hallucinated sentences, factual and cognitive; tables, figures and training data.

The same command again asks only what is missing. Exit status: 0 done, 2 an error, 3 the budget is reached,
130 interrupted.

For instance:

  deep cognibench --data cognibench --out runs/cognibench
      the published labels alone: statistics, rates, figures, and the judges that always say the same; no calls
  deep cognibench --data cognibench --llm gpt-4o-mini --out runs/cognibench --dry-run
      the most calls that the judges of a model can take; nothing is sent
  deep cognibench --data cognibench --llm gpt-4o-mini --threshold 2 3 --ablation --out runs/cognibench
      Tables 2, 3 and 5 and Figures 5 to 8; again, it asks only what is missing
  deep cognibench --data cognibench --encoder models/nli --out runs/cognibench
      an encoder reads every sentence beside its knowledge, as a baseline
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

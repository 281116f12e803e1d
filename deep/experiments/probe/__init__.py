"""PROBE: the builder of the benchmark, the measures of every step of a detector, and training data of both.

The same command again asks only what is missing. Exit status: 0 done, 2 an error, 3 the budget is reached,
130 interrupted.

For instance:

  deep probe build --articles articles.jsonl --out bench --writer a --decomposer b --verifier b c d e
  deep probe eval --data bench --llm gpt-4o-mini --out bench-eval
  deep probe export-sft --data bench --out sft.jsonl
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

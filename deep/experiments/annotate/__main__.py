"""Run `python -m deep.experiments.annotate`."""

from deep.experiments.annotate import main

if __name__ == "__main__":
    raise SystemExit(main())

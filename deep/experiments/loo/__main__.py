"""Run `python -m deep.experiments.loo`."""

from deep.experiments.loo import main

if __name__ == "__main__":
    raise SystemExit(main())

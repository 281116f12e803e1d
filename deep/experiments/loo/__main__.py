"""Run `python -m deep.experiments.loo`."""

from deep.experiments.loo._command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Run `python -m deep.experiments.transfer`."""

from deep.experiments.transfer._command import main

if __name__ == "__main__":
    raise SystemExit(main())

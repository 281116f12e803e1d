"""Run `python -m deep.experiments.fect`."""

from deep.experiments.fect._command import main

if __name__ == "__main__":
    raise SystemExit(main())

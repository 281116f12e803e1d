"""Run `python -m deep.experiments.cognibench`."""

from deep.experiments.cognibench._command import main

if __name__ == "__main__":
    raise SystemExit(main())

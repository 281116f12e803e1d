"""Run `python -m deep.experiments.cognibench`."""

from deep.experiments.cognibench import main

if __name__ == "__main__":
    raise SystemExit(main())

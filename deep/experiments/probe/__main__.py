"""Run `python -m deep.experiments.probe`."""

from deep.experiments.probe import main

if __name__ == "__main__":
    raise SystemExit(main())

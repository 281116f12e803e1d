"""Run `python -m deep.experiments.paper`."""

from deep.experiments.paper import main

if __name__ == "__main__":
    raise SystemExit(main())

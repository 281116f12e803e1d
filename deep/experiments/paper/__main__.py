"""Run `python -m deep.experiments.paper`."""

from deep.experiments.paper._command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Run `python -m deep.experiments.probe`."""

from deep.experiments.probe._command import main

if __name__ == "__main__":
    raise SystemExit(main())

"""Run `python -m deep.experiments.fect` as `deep fect`."""

from deep.cli import main

raise SystemExit(main(command="fect"))

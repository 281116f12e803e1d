"""Run `python -m deep.experiments.paper` as `deep paper`."""

from deep.cli import main

raise SystemExit(main(command="paper"))

"""Run `python -m deep.experiments.transfer` as `deep transfer`."""

from deep.cli import main

raise SystemExit(main(command="transfer"))

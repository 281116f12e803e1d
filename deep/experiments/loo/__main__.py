"""Run `python -m deep.experiments.loo` as `deep loo`."""

from deep.cli import main

raise SystemExit(main(command="loo"))

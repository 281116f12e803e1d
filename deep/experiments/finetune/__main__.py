"""Run `python -m deep.experiments.finetune` as `deep finetune`."""

from deep.cli import main

raise SystemExit(main(command="finetune"))

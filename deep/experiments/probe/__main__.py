"""Run `python -m deep.experiments.probe` as `deep probe`."""

from deep.cli import main

raise SystemExit(main(command="probe"))

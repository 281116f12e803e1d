"""Run `python -m deep.experiments.cognibench` as `deep cognibench`."""

from deep.cli import main

raise SystemExit(main(command="cognibench"))

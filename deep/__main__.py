"""Run `python -m deep` as `deep`."""

from deep.cli import main

raise SystemExit(main())

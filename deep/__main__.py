"""Run `python -m deep` as `deep`."""

import sys

from deep.cli import main

sys.exit(main())

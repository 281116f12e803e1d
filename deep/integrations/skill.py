"""Print the skill for agents: when to use deep, its commands, and how to read their output.

For instance:

  deep skill > skills/deep-judges/SKILL.md
      a file that an agent reads when a task is about claims and their sources
"""

import argparse
import sys
from pathlib import Path

from deep import console
from deep.exceptions import ExitStatus

SKILL = Path(__file__).with_name("SKILL.md")


def add_arguments(parser: console.CommandParser) -> None:
    """Add no option: the skill is one text."""


def run(_: argparse.Namespace) -> int:
    """Print the text as it stands in the package."""
    sys.stdout.write(SKILL.read_text(encoding="utf-8"))
    return ExitStatus.DONE

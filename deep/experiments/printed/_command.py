"""Cut the prompts that a paper prints out of your own copy of it; status 1 if one is not as it was printed.

For instance:

  deep prompts import --paper fect --text fect.txt --out printed
      the prompts of FECT as TOML files that `deep fect --prompt` takes; fect.txt is what pdftotext writes
"""

import argparse
from pathlib import Path

from deep import console
from deep.exceptions import ExitStatus
from deep.experiments.printed._import import PAPERS, import_lines, import_prompts, import_results, write_prompts


def add_arguments(parser: console.CommandParser) -> None:
    """Add the options."""
    parser.add_argument("--paper", required=True, choices=PAPERS, help="whose prompts")
    parser.add_argument("--text", required=True, metavar="FILE", help="plain text of its PDF, as pdftotext writes it")
    parser.add_argument("--out", type=Path, metavar="DIR", help="a folder for TOML prompts; default: printed-PAPER")


def run(args: argparse.Namespace) -> int:
    """Cut, write and report."""
    folder = args.out or Path(f"printed-{args.paper}")
    found = import_prompts(args.paper, args.text)
    paths = write_prompts(found, folder)
    console.print_result(import_results(found, paths), import_lines(found, folder), as_json=args.json)
    return ExitStatus.DONE if found.verified else ExitStatus.FOUND

"""Make a table of votes of several graders from the logs of Inspect; needs deep-judges[inspect].

A score of C or 1 is a vote 1, I or 0 a vote 0; all else is a missing vote with its reason beside the table.

For instance:

  deep data from-inspect logs --out votes.parquet
      a column for each grader of all logs in a folder, a dataset for each task
  deep data from-inspect run.eval --label human --out votes.parquet
      the grader `human` is right: its scores are the labels
"""

import argparse
from dataclasses import MISSING, asdict, dataclass
from pathlib import Path

from deep import console
from deep._util.files import check_out
from deep._util.options import option
from deep.exceptions import ExitStatus


@dataclass(frozen=True)
class _Logs:
    """Options of the command.

    Parameters
    ----------
    logs : tuple of str
        Logs of Inspect (.eval, .json), or folders of them.
    out : Path
        Votes: .parquet.
    label : str, optional
        The grader whose scores are the labels.
    """

    logs: tuple[str, ...] = option((), "LOG", flags=["logs"], nargs="+")
    out: Path = option(MISSING, "FILE")
    label: str | None = option(None, "NAME")


add_arguments = console.adder(_Logs)


def run(args: argparse.Namespace) -> int:
    """Read the logs, write and report."""
    from deep.integrations.inspect import votes_from_logs

    out = check_out(args.out, [".parquet"])
    found = votes_from_logs(args.logs, out, label=args.label)
    lines = [f"{name}: {n} items" for name, n in found.items.items()]
    lines.append(f"{found.votes} votes of {', '.join(found.voters)}: {out}")
    lines += [f"{n} missing: {reason}" for reason, n in sorted(found.reasons.items())]
    console.print_result(console.SCHEMA | asdict(found) | {"out": str(out)}, lines, as_json=args.json)
    return ExitStatus.DONE

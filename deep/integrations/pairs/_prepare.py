"""Write pairs as examples in both orders, for any judge to be asked which answer is better.

For instance:

  deep data pairs pairs.csv --orders both --out asked.csv
      columns a and b, and as wanted question, source, label, system_a, system_b; two examples a pair
  deep data pairs pairs.csv --orders ab --out asked.csv
      in one order alone: half the calls, and no way to see which judge prefers what stands first
"""

import argparse
import shlex
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import console
from deep._util.columns import write_rows
from deep._util.files import atomic_file, check_out
from deep._util.options import option
from deep.exceptions import ExitStatus
from deep.integrations.pairs import BETTER_PROMPT, ORDERS, both_orders, read_pairs

COLUMNS = ("dataset", "example_id", "document_id", "label", "source", "claim")


@dataclass(frozen=True)
class _Prepare:
    """Options of the command.

    Parameters
    ----------
    pairs : str
        CSV, JSON, JSONL or Parquet with the columns a and b.
    orders : {'both', 'ab', 'ba'}, default='both'
        Order of the two answers in the prompts.
    out : Path
        Examples: .csv.
    """

    pairs: str = option(MISSING, "PAIRS", flags=["pairs"])
    orders: str = option("both", choices=("both", "ab", "ba"))
    out: Path = option(MISSING, "FILE.csv")


add_arguments = console.adder(_Prepare)


def run(args: argparse.Namespace) -> int:
    """Read, write and report."""
    out = check_out(args.out, [".csv"])
    orders = ORDERS if args.orders == "both" else (args.orders,)
    examples = list(both_orders(read_pairs(args.pairs), orders))
    with atomic_file(out) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        rows = ([getattr(one, name) for name in COLUMNS] for one in examples)
        write_rows(file, COLUMNS, ([cell if cell is not None else "" for cell in row] for row in rows))
    answers = shlex.quote(str(out.with_suffix(".parquet")))
    ask = f"deep ask {shlex.quote(str(out))} --prompt {shlex.quote(str(BETTER_PROMPT))} --llm NAME --out {answers}"
    lines = [
        f"{len(examples)} examples: {out}",
        f"next: {ask}",
        f"then: deep panel pairs {answers} --out votes.parquet",
    ]
    console.print_result(
        console.SCHEMA | {"examples": len(examples), "out": str(out), "next": ask}, lines, as_json=args.json
    )
    return ExitStatus.DONE

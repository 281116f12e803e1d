"""Regenerate the DEEP paper's tables and figures from whatever votes are given, beside its printed figures.

python -m deep.experiments.paper --votes votes.parquet --scores scores.parquet --out paper
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deep._figures import save_figures
from deep._files import check_replaceable, to_json, whole_folder
from deep.console import HelpFormatter, Values, add_jobs, guarded
from deep.datasets import published_source, resolve_dataset
from deep.ensembles import ENSEMBLERS
from deep.evaluate import CAPTION, markdown
from deep.exceptions import InputError
from deep.experiments.loo import NOTICE, SIMULATED, LooOptions, load, run_all
from deep.experiments.paper._figures import paper_figures
from deep.experiments.paper._tables import TABLES, THIS_RUN, paper_tables, side_by_side
from deep.records import VoteMatrix

__all__ = ["main"]

CALIBRATORS = ("platt", "bbq", "histogram", "isotonic")
"""Those of the paper's Table 5."""

EXAMPLE_DATASET = "aggrefact-xsum"
"""The dataset of the paper's Figure 4."""

EXAMPLES = """\
examples:
  python -m deep.experiments.paper --out paper
      every table and Figure 4 on the embedded, simulated votes
  python -m deep.experiments.paper --votes votes.parquet --scores scores.parquet --out paper
      the same from your own votes, and Figures 1 and 2 from encoder scores
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="python -m deep.experiments.paper",
        description="Tables 1 to 6 and Figures 1, 2 and 4 of the DEEP paper, each figure marked published or this run.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+", "default": []}
    p.add_argument("--votes", metavar="FILE", **several, help="tables of votes (CSV, Parquet); default: simulated")
    p.add_argument("--scores", metavar="FILE", **several, help="tables of encoder scores")
    p.add_argument("--ignore", metavar="COLUMN", **several, help="columns that are no voters")
    p.add_argument("--ensembler", metavar="NAME", **several, help=f"of: {', '.join(ENSEMBLERS)}; default: all")
    p.add_argument("--figure-dataset", metavar="NAME", help=f"of Figure 4; default: {EXAMPLE_DATASET}, else the first")
    p.add_argument("--max-failure-rate", type=float, default=0.05, metavar="SHARE", help="refuse voters above it")
    p.add_argument("--n-boot", type=int, default=10_000, metavar="N", help="resamples of every interval")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that draws")
    add_jobs(p)
    p.add_argument("--out", type=Path, default=Path("runs/paper"), metavar="DIR", help="folder for the results")
    return p


def figure_dataset(name: str | None, votes: VoteMatrix) -> str:
    """Return the dataset of Figure 4."""
    if name is not None:
        return resolve_dataset(name, votes.dataset_names, param="figure_dataset")
    return EXAMPLE_DATASET if EXAMPLE_DATASET in votes.dataset_names else votes.dataset_names[0]


def check_labeled(votes: VoteMatrix) -> None:
    """Raise unless every dataset has labels, without which no table can be filled."""
    for dataset in votes.dataset_names:
        if (votes.labels[votes.datasets == dataset] < 0).any():
            raise InputError(f"`label` must be 0 or 1 in every row. Got a row without in dataset {dataset!r}.")


def write(folder: Path, figures: Any, drawn: dict[str, Any], origin: str | list[str]) -> None:
    """Write one CSV of all figures, one Markdown text a table, and the drawings."""
    votes = origin if isinstance(origin, str) else ", ".join(origin)
    figures.assign(votes=figures["origin"].map(lambda name: votes if name == THIS_RUN else "")).to_csv(
        folder / "figures.csv", index=False, lineterminator="\n"
    )
    for table, title in TABLES.items():
        lines = [f"# Table {table}. {title}", "", *markdown(side_by_side(figures, table)), ""]
        lines += [f"In percent. Published: {published_source()}. This run: {votes} votes, the paper's recipe.", ""]
        (folder / f"table{table}.md").write_text("\n".join(lines), encoding="utf-8")
    save_figures(drawn, folder, caption=CAPTION if origin == SIMULATED else "")


def run(argv: Sequence[str] | None) -> int:
    """Read the options, hold every dataset out, write and report."""
    args = parser().parse_args(argv)
    check_replaceable(args.out)
    loaded = load(args)
    votes, scores, origin = loaded
    check_labeled(votes)
    example = figure_dataset(args.figure_dataset, votes)
    settings = LooOptions(
        recipe="paper",
        ensemblers=tuple(dict.fromkeys(args.ensembler)) or tuple(ENSEMBLERS),
        calibrators=CALIBRATORS,
        n_boot=args.n_boot,
        random_state=args.seed,
        n_jobs=args.jobs,
    )
    runs = [found.results for found in run_all(settings, votes.dataset_names, loaded)]
    drawn = paper_figures(votes, scores, runs, example, args.seed)
    with whole_folder(args.out) as scratch:
        (scratch / "results.json").write_text(to_json({"votes": origin, "runs": runs}), encoding="utf-8")
        write(scratch, paper_tables(runs), drawn, origin)
    names = ", ".join([*(f"table{table}.md" for table in TABLES), *(f"{name}.png" for name in drawn)])
    notice = f"{NOTICE}\n" if origin == SIMULATED else ""
    sys.stdout.write(f"{notice}{names}: in {args.out}\n")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)

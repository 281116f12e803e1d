"""The DEEP paper's tables and figures from any votes, beside its printed figures.

Votes are a table of dataset, item_id and label, and a column a judge (1, 0 or empty); every row needs its label, and
there must be two datasets or more, since each is held out in turn. A dataset stands in the same column as a printed
one where it has the name that the tables print: aggrefact-xsum, halueval-summarization, tofueval-mediasum, tofueval-
meetingbank. Others get columns of their own. With --n-boot 200 it takes half a minute of processor time for four
datasets by seven judges, one and a half for twelve by nine.

For instance:

  deep paper --out paper
      every table and Figure 4 on the embedded, simulated votes
  deep paper --votes votes.parquet --scores scores.parquet --out paper
      the same from your own votes, and Figures 1 and 2 from encoder scores
"""

import argparse
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

from deep import console
from deep._util.checks import check_choice
from deep._util.columns import escape_frame
from deep._util.files import JsonObject, check_replaceable, read_asset
from deep._util.options import option, topic_values
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import ExitStatus
from deep.experiments import loo

PUBLISHED_TABLES = ("2", "4", "5")


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One figure of the paper's Tables 2, 4 and 5.

    Parameters
    ----------
    table : {'2', '4', '5'}
        The number of the table in the paper.
    dataset : str
        One of the paper's four, as deep names it: ``aggrefact-xsum``.
    ensembler : str
        As deep registers it: ``LGBM``.
    n_prompts : {3, 5, 9}
        How many prompts' votes are combined.
    calibrator : str or None
        None: before calibration.
    metric : {'balanced_accuracy', 'ece'}
        What `value` measures, the same in all of a table.
    value : float
        In [0, 1].

    References
    ----------
    .. [1] Chandler, Surve and Su (2024). https://arxiv.org/abs/2406.13009
    """

    table: str
    dataset: str
    ensembler: str
    n_prompts: int
    calibrator: str | None
    metric: str
    value: float


@cache
def published_table(number: str) -> tuple[PublishedFigure, ...]:
    """Return every figure of one of the paper's large tables.

    Parameters
    ----------
    number : {'2', '4', '5'}
        The number of the table in the paper.

    Returns
    -------
    tuple of PublishedFigure

    Notes
    -----
    The paper does not say how many prompts Table 5 has; its figures on AggreFact-XSUM are those of Table 4 with three.

    Examples
    --------
    >>> from deep.experiments.paper import published_table
    >>> [len(published_table(number)) for number in ("2", "4", "5")]
    [192, 84, 280]
    >>> max(published_table("2"), key=lambda figure: figure.value).value
    0.7974
    """
    table = _tables()[check_choice(number, PUBLISHED_TABLES, "number")]
    # A method has a row for each value of the outer axis, and in it a cell for each of the inner one.
    outer, inner = table["axes"]
    alone = {axis: table[axis][0] for axis in ("dataset", "n_prompts", "calibrator")} | {"metric": table["metric"]}
    return tuple(
        PublishedFigure(number, ensembler=method, value=round(value / 100.0, 6), **alone | {outer: row, inner: column})
        for method, rows in table["methods"].items()
        for row, values in zip(table[outer], rows, strict=True)
        for column, value in zip(table[inner], values, strict=True)
    )


def kept_out(figure: PublishedFigure) -> bool:
    """Return whether the embedded votes were fitted without a printed figure: about half of them are.

    Which, says a checksum of the cell's name. LabelModel and the majority of Table 2 are all fitted, and Table 5
    repeats cells of Table 4.
    """
    cell = figure.dataset, figure.ensembler, figure.n_prompts, figure.calibrator, figure.metric
    fixed = figure.table == "2" and figure.ensembler in ("LabelModel", "MajorityLabelVoter")
    return not fixed and bool(crc32("|".join(map(str, cell)).encode()) % 2)


def _tables() -> JsonObject:
    return read_asset(__package__, "published_tables.json")


def printed_methods(number: str) -> list[str]:
    """Return the ensemblers of one of the large tables."""
    return list(_tables()[number]["methods"])


NO_NETCAL = "netcal is not installed: its calibrators and ECE are left out. Run: pip install 'deep-judges[netcal]'."


@dataclass(frozen=True)
class _Paper:
    """Options of the command.

    Parameters
    ----------
    figure_dataset : str, optional
        Of Figure 4; default: aggrefact-xsum, else the first.
    no_netcal : bool, default=False
        Leave out netcal's calibrators and ECE (Tables 4, 5).
    out : Path, default=Path('runs/paper')
        Folder for the results.
    """

    figure_dataset: str | None = option(None, "NAME")
    no_netcal: bool = option(False)
    out: Path = option(Path("runs/paper"), "DIR")


add_arguments = console.adder(
    *("votes", loo.Encoders, "scale", "ignore", "ensembler", _Paper),
    *("max-failure-rate", "strict", console.Computation, "json"),
    scale={"flags": ["--scale", "--range"], "rare": True},
    ensembler={"help": f"of: {', '.join(ENSEMBLER_NAMES)}; default: the paper's"},
)


def run(args: argparse.Namespace) -> int:
    """Hold every dataset out, write and report."""
    from deep.experiments import study
    from deep.experiments.loo import LooOptions, part_lines, run_all
    from deep.experiments.paper import _paper_tables

    check_replaceable(args.out)
    all_votes, scores = loo.read_votes_and_encoders(args)
    votes, rivals = _paper_tables.ours_and_rivals(all_votes)
    origin = console.origin_of(args)
    _paper_tables.check_labeled(votes)
    example = _paper_tables.figure_dataset(args.figure_dataset, votes)
    lacks_netcal = not args.no_netcal and find_spec("netcal") is None
    settings = LooOptions(
        tables=("paper",),
        all_chains=True,
        netcal=not (args.no_netcal or lacks_netcal),
        ensembler=tuple(dict.fromkeys(args.ensembler)) or None,
        **topic_values(console.Computation, args),
    )
    with console.progress_bars() as progress:
        result = run_all(settings, votes.dataset_names, votes, scores, origin, progress)
    runs = [_paper_tables.with_rivals(each.results, rivals, settings) for each in result]
    figures = _paper_tables.with_verdicts(_paper_tables.paper_tables(runs), origin)
    encoders, moves = loo.encoder_parts(args, votes, scores, runs)
    pictures = _paper_tables.paper_figures(encoders, result, example)
    pictures[_paper_tables.ANSWER_FIGURE] = _paper_tables.draw_distance(figures)
    tables = {f"table{number}": _paper_tables.side_by_side(figures, number) for number in _paper_tables.TABLES}
    added = {"distances": _paper_tables.distances(figures), "claims": _paper_tables.claims(figures, runs)}
    titles = {f"table{number}": f"Table {number}. {title}" for number, title in _paper_tables.TABLES.items()}
    titles |= {"distances": _paper_tables.DISTANCES, "claims": _paper_tables.CLAIMS, "threshold-moves": loo.MOVES_TITLE}
    votes_of = origin if isinstance(origin, str) else ", ".join(origin)
    paper = read_asset("deep.datasets", "operating_points.json")["source"]
    published = f"{paper['authors']}. {paper['title']}. arXiv:{paper['arxiv']}"
    note = f"In percent; * the votes were fitted to it. Published: {published}. This run: {votes_of} votes."

    def write_more(folder: Path) -> None:
        marked = figures.assign(votes=figures["origin"].map(lambda name: "" if name == "published" else votes_of))
        escape_frame(marked).to_csv(folder / "figures.csv", index=False, lineterminator="\n")
        loo.write_named_table(loo.PARTS_TABLE_NAME, runs, folder, votes=origin)

    study.publish(
        args,
        _paper_tables.verdict_of(figures, origin),
        {"votes": origin, "runs": runs},
        lines=[
            *_paper_tables.table_lines(figures, {titles[name]: table for name, table in added.items()}),
            *part_lines(runs),
            *([NO_NETCAL] if lacks_netcal else []),
        ],
        tables=tables | added | moves,
        titles=titles,
        shown=_paper_tables.table_as_text,
        note=note,
        figures=pictures,
        caption=loo.SIMULATED_CAPTION if origin == console.SIMULATED else "",
        more=write_more,
    )
    return ExitStatus.DONE

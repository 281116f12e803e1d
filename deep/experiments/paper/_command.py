"""`deep paper`: regenerate the DEEP paper's tables and figures from any votes, beside its printed figures."""

import argparse
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from deep import console
from deep._util.columns import plain_frame
from deep._util.files import check_replaceable, packaged
from deep._util.options import option, topic_values
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import ExitStatus
from deep.experiments import loo

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
    from deep.experiments.paper import _paper_tables, _show

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
    figures = _show.with_verdicts(_paper_tables.paper_tables(runs), origin)
    encoders, moves = loo.encoder_parts(args, votes, scores, runs)
    tables = {f"table{number}": _show.side_by_side(figures, number) for number in _paper_tables.TABLES}
    added = {"distances": _show.distances(figures), "claims": _show.claims(figures, runs)}
    titles = {f"table{number}": f"Table {number}. {title}" for number, title in _paper_tables.TABLES.items()}
    titles |= {"distances": _show.DISTANCES, "claims": _show.CLAIMS, "threshold-moves": loo.MOVES}
    votes_of = origin if isinstance(origin, str) else ", ".join(origin)
    paper = packaged("deep.datasets", "operating_points.json")["source"]
    published = f"{paper['authors']}. {paper['title']}. arXiv:{paper['arxiv']}"
    note = f"In percent; * the votes were fitted to it. Published: {published}. This run: {votes_of} votes."

    def write_more(folder: Path) -> None:
        marked = figures.assign(votes=figures["origin"].map(lambda name: "" if name == "published" else votes_of))
        plain_frame(marked).to_csv(folder / "figures.csv", index=False, lineterminator="\n")
        loo.write_named(loo.PARTS, runs, folder, votes=origin)

    study.publish(
        args,
        _show.verdict_of(figures, origin),
        {"votes": origin, "runs": runs},
        lines=[
            *_show.table_lines(figures, {titles[name]: table for name, table in added.items()}),
            *part_lines(runs),
            *([NO_NETCAL] if lacks_netcal else []),
        ],
        tables=tables | added | moves,
        titles=titles,
        shown=_show.shown,
        note=note,
        figures=_show.paper_figures(encoders, result, example) | {_show.ANSWER: _show.draw_distance(figures)},
        caption=loo.CAPTION if origin == console.SIMULATED else "",
        more=write_more,
    )
    return ExitStatus.DONE

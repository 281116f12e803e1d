"""`deep paper`: regenerate the DEEP paper's tables and figures from any votes, beside its printed figures."""

import argparse
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import deep.report as report
from deep import console
from deep._util.files import check_replaceable, write_results
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
    *("votes", loo.Encoders, "range", "ignore", "ensembler", _Paper),
    *("max-failure-rate", "strict", console.Computation),
    ensembler={"help": f"of: {', '.join(ENSEMBLER_NAMES)}; default: those of the paper"},
)


def run(args: argparse.Namespace) -> int:
    """Hold every dataset out, write and report."""
    from deep.experiments.loo import LooOptions, part_lines, run_all
    from deep.experiments.paper import _paper_tables, _show

    check_replaceable(args.out)
    given, scores = loo.read_votes_and_encoders(args)
    votes, rivals = _paper_tables.ours_and_rivals(given)
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
        found = run_all(settings, votes.dataset_names, votes, scores, origin, progress)
    runs = [_paper_tables.with_rivals(each.results, rivals, settings) for each in found]
    figures = _show.with_verdicts(_paper_tables.paper_tables(runs), origin)
    verdict = _show.verdict_of(figures, origin)
    with report.reported_folder(args.out) as scratch:
        write_results(scratch, {"verdict": verdict.as_dict(), "votes": origin, "runs": runs})
        drawn = _show.paper_figures(loo.write_encoders(args, votes, scores, runs, scratch), found, example)
        _show.write(scratch, figures, drawn | {_show.ANSWER: _show.draw_distance(figures)}, origin)
        loo.write_named(loo.PARTS, runs, scratch, votes=origin)
    names = ", ".join([*(f"table{table}.md" for table in _paper_tables.TABLES), *(f"{name}.png" for name in drawn)])
    notice = (f"{console.NOTICE}\n" if origin == console.SIMULATED else "") + (f"{NO_NETCAL}\n" if lacks_netcal else "")
    lines = (
        *console.study_lines(verdict, ""),
        *_show.table_lines(figures),
        *part_lines(runs),
        *_show.summary_lines(figures),
    )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.write(f"{notice}{names}: in {args.out}\n{report.report_line(args.out)}\n")
    return ExitStatus.DONE

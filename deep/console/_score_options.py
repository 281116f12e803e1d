"""What `deep score` is given, votes or text and how to score them, and how it shows one pair of texts."""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from deep import asking, datasets, evaluate, model
from deep._util.checks import Floats
from deep._util.entry_points import WRITER, find_entry_points
from deep._util.files import check_out
from deep.console import _options
from deep.console._output import SCHEMA, Results, percent, print_result
from deep.datasets import benchmarks
from deep.exceptions import InputError, printable
from deep.records import VoteMatrix

PAIR = ("source", "claim", "question", "source_text", "claim_text", "question_text")


def add_score_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of scoring: votes or texts, the prior, the judges, and their turns."""
    what = parser.add_argument_group("what to score")
    what.add_argument("--votes", metavar="FILE", **_options.SEVERAL, help="tables of votes")
    what.add_argument(
        "--scores", metavar="FILE", **_options.SEVERAL, help="tables of soft scores, where the model has some"
    )
    what.add_argument("--input", metavar="EXAMPLES", help="a benchmark, or a file with the columns source and claim")
    what.add_argument("--source", metavar="FILE", help="a text file; - for standard input")
    what.add_argument("--claim", metavar="FILE", help="a text file; - for standard input")
    what.add_argument("--source-text", metavar="TEXT", help="in place of --source")
    what.add_argument("--claim-text", metavar="TEXT", help="in place of --claim")
    what.add_argument("--question", metavar="FILE", help="the question that the claim answers, if there is one")
    what.add_argument("--question-text", metavar="TEXT", help="in place of --question")
    prior = "share of consistent rows; default: estimated for each dataset of --votes, the training mean for text"
    what.add_argument("--prior", type=float, metavar="P", help=prior)
    _options.add_options(what, "share")
    inspect = "write --out as JSON lines that Inspect's precomputed_scores reads; a row without a vote is left out"
    what.add_argument("--to", choices=sorted(find_entry_points(WRITER).usable), help=inspect)
    texts = "add the columns claim, source and question; of votes those of the examples that they remember"
    what.add_argument("--with-texts", action="store_true", help=texts)
    _add_judges(parser)
    _add_turns(parser)


def _add_judges(parser: argparse.ArgumentParser) -> None:
    judges = parser.add_argument_group("judges of text")
    _options.add_own_judges(judges)


def _add_turns(parser: argparse.ArgumentParser) -> None:
    turns = parser.add_argument_group("asking one by one")
    turns.add_argument("--sequential", action="store_true", help="stop where the rest cannot change the decision")
    cost = "stop where asking costs more than the errors it spares; N for each, in dollars where all prices are known, "
    turns.add_argument("--error-cost", type=float, metavar="N", help=f"{cost}else in calls")
    dry = "print the savings on the training data; send nothing"
    turns.add_argument("--dry-run", action="store_true", help=dry)


def score_options(args: argparse.Namespace) -> "model.ScoreOptions":
    """Return how to score, once every combination of options makes sense."""
    pair = any(getattr(args, name) is not None for name in PAIR)
    if [bool(args.votes), args.input is not None, pair].count(True) != 1:
        raise InputError("`votes`, `input`, or `source` and `claim` must be given. Got none or more than one of them.")
    of_text = _options.options_given(
        args, _add_judges, _add_turns, _options.add_prompt_options, _options.add_example_options
    )
    if of_text and args.votes:
        raise InputError(f"`{of_text[0]}` must be given with text. Got it with votes, which have all been asked for.")
    given = [name for name in ("error_cost", "dry_run") if getattr(args, name) not in (None, False)]
    if given and not args.sequential:
        raise InputError(f"`{given[0]}` must be given with `sequential`. Got it without.")
    if args.error_cost is not None and not 0 < args.error_cost < math.inf:
        raise InputError(f"`error_cost` must be above 0. Got {args.error_cost!r}.")
    if args.out is None and (args.votes or args.input is not None):
        raise InputError(f"`out` must be given with `{'votes' if args.votes else 'input'}`. Got none.")
    if not args.votes and len(args.llm) > 1:
        raise InputError(f"`llm` must name one LLM to ask in place of the fitted ones. Got {len(args.llm)}.")
    if not args.votes and args.allow_missing:
        raise InputError("`allow_missing` must be given with `votes`. Got it with text, whose judges are all run.")
    if args.with_texts and (args.out is None or args.to is not None):
        raise InputError("`with_texts` must be given with `out` and without `to`. Got another.")
    if args.scores and not args.votes:
        raise InputError("`scores` must be given with `votes`. Got them with text.")
    check_one_share(args)
    prior = None if args.prior is None else model.check_prior(args.prior)
    return model.ScoreOptions(args.allow_mismatch, args.allow_missing, prior)


def check_one_share(args: argparse.Namespace) -> None:
    """Raise where both a known share and a belief about it are given."""
    if args.prior is not None and args.share is not None:
        raise InputError(
            f"`share` must be given without `prior`. Got {args.share!r} and {args.prior:g}. Leave one out."
        )


def scores_out(args: argparse.Namespace, endings: Sequence[str]) -> Path | None:
    """Return where the scores go, once it can be written to; None where they are only printed."""
    if args.to is not None and args.out is None:
        raise InputError(f"`out` must be given with `to`. Got none with {args.to!r}.")
    return None if args.out is None else check_out(args.out, endings if args.to is None else [".jsonl"])


def texts_to_score(args: argparse.Namespace) -> "datasets.Examples":
    """Return the examples of ``--input``, or the one pair of texts."""
    if args.input is not None:
        return _options.examples_from(args, args.input)
    asked = args.question is not None or args.question_text is not None
    names = ("source", "claim", "question") if asked else ("source", "claim")
    return datasets.examples_from_dataset([{name: _part(args, name) for name in names}], name="text")


def _part(args: argparse.Namespace, name: str) -> str:
    """Return the source or the claim."""
    path, text = getattr(args, name), getattr(args, f"{name}_text")
    if (path is None) == (text is None):
        raise InputError(f"`{name}` or `{name}_text` must be given. Got {'neither' if path is None else 'both'}.")
    text = _options.read_text(path, name) if text is None else str(text)
    if not text.strip() or "\0" in text:
        raise InputError(f"`{name}` must be text. Got {'a NUL byte' if text.strip() else 'nothing'}.")
    return text


def _prior_line(prior: Results) -> str:
    """Return the line that says at which share of consistent items texts are scored."""
    return f"P is for texts of which {percent(prior['estimate'])} are consistent: {prior['of']}"


def _pair_lines(scored: "asking.Scored", more: Results) -> Iterator[str]:
    """Yield P, the decision and its rule, and the vote and rationale of each judge."""
    row = scored.columns
    bounds = "no interval" if row["p_low"] is None else f"90 % interval {row['p_low']:.3f} to {row['p_high']:.3f}"
    yield f"P(consistent) = {row['p_consistent']:.4f} ({bounds})"
    yield _prior_line(more["prior"])
    yield f"decision: {evaluate.state_words(decided=row['decision'], sure=bool(row['sure']))}"
    yield more["rule"]
    yield from (f"  {name}: not asked" for name in scored.not_asked or ())
    for name, judgment in scored.judgments.items():
        vote = judgment.reason if judgment.reason else str(judgment.vote)
        rationale = " ".join((judgment.rationale or "").split())
        yield f"  {name}: {vote}{f'. {rationale}' if rationale else ''}"


def _with_texts(scored: "asking.Scored") -> "asking.Scored":
    """Return a scored example with its texts among its columns."""
    return replace(
        scored, columns=scored.columns | {name: getattr(scored.example, name) for name in model.TEXT_COLUMNS}
    )


LOWEST = 10
"""Items of the lowest P that are printed."""


def score_votes(fitted: "model.Model", args: argparse.Namespace, options: "model.ScoreOptions") -> None:
    """Score tables of votes, and print how many items are suspect, each share, the rule, and the lowest P."""
    out = cast("Path", scores_out(args, [".csv", ".parquet"]))  # which --votes demands
    counts = evaluate.DecisionCounts(most=LOWEST)
    given = {"with_texts": args.with_texts, "seen": counts.add_table}
    found = model.score_file(fitted, args.votes, out, options, args.scores, args.to, **given)
    results = {**found.results(), "counts": counts.as_dict(), "out": str(out)}
    lines = [evaluate.suspect_words(counts), *model.prior_lines(found.priors), found.sentence, *counts.lines()]
    print_result(SCHEMA | results, [*lines, f"{found.n} rows scored: {out}"], as_json=args.json)


def told_of_texts(fitted: "model.Model", options: "model.ScoreOptions") -> Results:
    """Return the prior and the rule of decision of texts."""
    rule = fitted.rule.sentence(fitted.threshold(options.prior))
    return {"prior": asking.prior_of_texts(fitted, options), "rule": rule}


def print_scored(
    args: argparse.Namespace,
    scored: "Iterator[list[asking.Scored]]",
    columns: "dict[str, model.ItemColumn]",
    more: Results,
) -> None:
    """Write scored examples, or print the one of a pair; `more` goes into the result, `prior` for both readers."""
    if args.with_texts:
        scored = ([_with_texts(one) for one in some] for some in scored)
        columns = columns | model.TEXT_COLUMNS
    schema = model.schema_of(columns)
    if args.input is None:
        ((pair,),) = scored  # to its end, where it closes the ledger
        if args.out is not None:
            asking.write_scored(iter([[pair]]), args.out, schema, args.to)
        print_result(SCHEMA | {**pair.as_dict(), **more}, _pair_lines(pair, more), as_json=args.json)
    else:
        n = asking.write_scored(scored, args.out, schema, args.to)
        results = SCHEMA | {"rows": n, "out": str(args.out), **more}
        lines = [_prior_line(more["prior"]), more["rule"], f"{n} examples scored: {args.out}"]
        print_result(results, lines, as_json=args.json)


SIMULATED = "simulated"

NOTICE = (
    "These votes are SIMULATED from the operating points that the DEEP paper publishes; no LLM was called. "
    "Give your own with --votes."
)


def origin_of(args: argparse.Namespace) -> str | list[str]:
    """Return the tables of votes, or 'simulated'."""
    return list(args.votes) or SIMULATED


def read_training_votes(args: argparse.Namespace) -> VoteMatrix:
    """Return the votes of `--votes`, else simulated ones; refuse voters that failed too often."""
    return read_votes_and_scores(args)[0]


def read_votes_and_scores(args: argparse.Namespace) -> "tuple[VoteMatrix, datasets.ScoreTable | None]":
    """Return the votes, and the scores aligned with them where `--scores` is given.

    Raises
    ------
    InputError
        A table cannot be used, `--ignore` names no column, or, where the command has `--max-failure-rate`, every voter
        failed on more of a dataset, with `--strict` any.
    """
    score_tables = vars(args).get("scores", [])
    in_scores = set(datasets.table_columns(score_tables)) if score_tables else set()
    if args.votes:
        in_votes = set(datasets.table_columns(args.votes))
        # A name that neither has goes to the votes, whose error lists what there is.
        ignored = [name for name in args.ignore if name in in_votes or name not in in_scores]
        votes = datasets.read_votes(args.votes, ignore=ignored)
        if "max_failure_rate" in args:
            votes = _without_failing(votes, args)
    else:
        votes = datasets.simulate_votes(args.seed)
        unknown = [name for name in args.ignore if name not in in_scores]
        if unknown:
            raise InputError(f"`ignore` must name columns of --votes or --scores. Got {unknown[0]!r}, and no --votes.")
    if not score_tables:
        if vars(args).get("range"):
            raise InputError("`range` must be given with --scores. Got it alone.")
        return votes, None
    scores = datasets.read_scores(score_tables, ignore=[name for name in args.ignore if name in in_scores])
    given = datasets.parse_ranges(vars(args).get("range", []))
    ranges = datasets.score_ranges(scores.score_names, scores.scores, given)
    return votes, replace(datasets.join_scores(votes, scores), ranges=ranges)


def _without_failing(votes: VoteMatrix, args: argparse.Namespace) -> VoteMatrix:
    """Return the votes of voters that fail on at most `--max-failure-rate` of each dataset; warn of the others."""
    worst = datasets.worst_failures(datasets.read_reasons(args.votes, votes))
    failing = {name: each for name, each in worst.items() if each.rate > args.max_failure_rate}
    kept = [name for name in votes.voter_names if name not in failing]
    for each in failing.values():
        says, enough = datasets.failing_words(each, args.max_failure_rate), math.ceil(100 * each.rate) / 100
        remedy = f"`deep votes --retry-failed` asks again; --max-failure-rate {enough:g} takes it"
        if args.strict or not kept:
            raise InputError(f"`votes` must be of voters that seldom fail. Got one that does: {says}. {remedy}.")
        sys.stderr.write(printable(f"warning: left out: {says}. {remedy}; --strict ends here.") + "\n")
    if not failing:
        return votes
    return votes.with_columns(votes=votes.votes[:, [name in kept for name in votes.voter_names]], voter_names=kept)


@dataclass(frozen=True, eq=False)
class FitData:
    """Votes, scores and a target that a model is fitted on.

    Parameters
    ----------
    votes : VoteMatrix
    scores : ndarray of float, shape (n_examples, n_scorers), optional
    score_names : tuple of str
    target : str, optional
        The dataset that `--labels` is of.
    provenance : dict
        Where all of it came from.
    """

    votes: VoteMatrix
    scores: Floats | None
    score_names: tuple[str, ...]
    target: str | None
    provenance: dict[str, object]


def read_fit_data(args: argparse.Namespace) -> FitData:
    """Read what the options name.

    Raises
    ------
    InputError
        There are neither votes nor `--simulated`, or both, a table cannot be used, or labels are of several datasets.
    """
    if bool(args.votes) == args.simulated:
        what = "both" if args.votes else "neither"
        grades = "; of grades or scores make votes first, 1 from the one on that means consistent and 0 below it"
        alone = grades if args.scores and not args.votes else ""
        raise InputError(f"`VOTES` or `simulated` must be given. Got {what}. Give tables of votes{alone}.")
    every, soft = read_votes_and_scores(args)
    if soft is not None:  # a label known beside the scores is known
        every = every.with_columns(labels=soft.labels)
    votes = datasets.choose_datasets(every, only=args.only, exclude=args.exclude)
    target = None
    if args.labels:
        table = datasets.read_labels(args.labels, votes)
        names = sorted(set(table.datasets))
        if len(names) > 1:
            raise InputError(
                f"`labels` must be of one dataset, your own. Got {', '.join(names)}. Give the labels of one."
            )
        votes, target = datasets.join_labels(votes, table), names[0]
    provenance = _provenance(args, votes)
    if soft is None:
        return FitData(votes, None, (), target, provenance)
    # Labels of the target are those of its own file and no others.
    joined = datasets.join_scores(votes, replace(soft, labels=np.full_like(soft.labels, -1)))
    return FitData(votes, joined.scores, soft.score_names, target, provenance)


def _provenance(args: argparse.Namespace, votes: VoteMatrix) -> dict[str, object]:
    files = {name: [Path(path).name for path in getattr(args, name)] for name in ("votes", "labels", "scores")}
    return {
        **{name: value for name, value in files.items() if value},
        "votes": files["votes"] or SIMULATED,
        "voters": datasets.vote_details(args.votes),
        "failures": _failures(args, votes),
        "licences": benchmarks.licence_terms(datasets.benchmark_datasets(args.votes) & {*votes.dataset_names}),
    }


def _failures(args: argparse.Namespace, votes: VoteMatrix) -> dict[str, list[float]]:
    """Return by voter its highest share of failures on a dataset, and the items there, where all reasons are known."""
    found = datasets.read_reasons(args.votes, votes)
    worst, n = datasets.worst_failures(found), len(votes.votes)
    known = [name for name, count in datasets.missing_without_reason(votes, found).items() if not count]
    return {name: [worst[name].rate, worst[name].n_items] if name in worst else [0.0, n] for name in known}

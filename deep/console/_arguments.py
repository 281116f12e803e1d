"""What the options of commands mean: which files are read, whom to ask, what is scored, and what excludes what."""

import argparse
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from deep import asking, datasets, evaluate, llm, model, prompt_pool
from deep._util.files import MAX_TEXT_BYTES, check_out, read_bytes
from deep._util.names import check_name
from deep._util.options import options_of, topic_values
from deep.console import _options
from deep.console._output import SCHEMA, Results, percent, print_result
from deep.exceptions import InputError, note
from deep.records import Example, VoteMatrix

if TYPE_CHECKING:
    from deep.judges import Judge

# The options that name one pair of texts.
TEXT_OPTIONS = ("source", "claim", "question", "source_text", "claim_text", "question_text")


def score_options(args: argparse.Namespace) -> "model.ScoreOptions":
    """Return how to score, once every combination of options makes sense."""
    pair = any(getattr(args, name) is not None for name in TEXT_OPTIONS)
    if [bool(args.votes), args.input is not None, pair].count(True) != 1:
        raise InputError("`votes`, `input`, or `source` and `claim` must be given. Got none or more than one of them.")
    # An option without effect is refused: its user believes that it has one.
    of_text = options_given(args, _options.OwnJudges, _options.Turns, *_options.PROMPT_TOPICS, _options.ExampleColumns)
    if of_text and args.votes:
        raise InputError(f"`{of_text[0]}` must be given with text. Got it with votes, which need no judge to be asked.")
    names = [name for name in ("error_cost", "dry_run") if getattr(args, name) not in (None, False)]
    if names and not args.sequential:
        raise InputError(f"`{names[0]}` must be given with `sequential`. Got it without.")
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
        return examples_from(args, args.input)
    has_question = args.question is not None or args.question_text is not None
    names = ("source", "claim", "question") if has_question else ("source", "claim")
    return datasets.examples_from_dataset([{name: _part(args, name) for name in names}], name="text")


def _part(args: argparse.Namespace, name: str) -> str:
    """Return the source or the claim."""
    path, text = getattr(args, name), getattr(args, f"{name}_text")
    if (path is None) == (text is None):
        raise InputError(f"`{name}` or `{name}_text` must be given. Got {'neither' if path is None else 'both'}.")
    text = read_text(path, name) if text is None else str(text)
    if not text.strip() or "\0" in text:
        raise InputError(f"`{name}` must be text. Got {'a NUL byte' if text.strip() else 'nothing'}.")
    return text


def _prior_line(prior: Results) -> str:
    """Return the line that says at which share of consistent items texts are scored."""
    return f"P assumes that {percent(prior['estimate'])} of texts are consistent: {prior['of']}"


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
        score = f" (score {judgment.score:.3g})" if name in scored.graders else ""
        vote = judgment.reason or f"{judgment.vote}{score}"
        rationale = " ".join((judgment.rationale or "").split())
        yield f"  {name}: {vote}{f'. {rationale}' if rationale else ''}"


# The items of the lowest P that are printed. Ten fit on a screen and are read by hand. Chosen; no measurement is known.
N_LOWEST = 10

# The most items whose examples are read to print the claims of the lowest P. It bounds time and memory; of a larger
# table the ids are printed alone.
MAX_READ = 100_000


def score_votes(fitted: "model.Model", args: argparse.Namespace, options: "model.ScoreOptions") -> None:
    """Score tables of votes, and print how many items are suspect, each share, the rule, and the lowest P."""
    out = cast("Path", scores_out(args, [".csv", ".parquet"]))  # which --votes demands
    counts = evaluate.DecisionCounts(most=N_LOWEST)
    extras = {"with_texts": args.with_texts, "seen": counts.add_table}
    result = model.score_file(fitted, args.votes, out, options, args.scores, args.to, **extras)
    results = {**result.results(), "counts": counts.as_dict(), "out": str(out)}
    asks = evaluate.label_words(fitted, result.priors.values())
    command = f"  deep label {shlex.join([*args.votes, '--model', str(args.model_file), '--n', '10'])}"
    hints = [evaluate.sure_words(fitted)]
    decided = counts.consistent + counts.inconsistent
    if not counts.alike:
        hints += [] if decided or counts.common_p is not None else [evaluate.order_words(fitted)]
        hints += [asks, command] if asks else []
    shares = model.prior_lines(result.priors)
    # Where something is decided, the sentence of the rule says which items are.
    certainty = [] if decided else [evaluate.certainty_words(counts)]
    # The examples are read whole for a few of them: of a million that takes longer than scoring.
    names = [(item.dataset, item.item_id) for item in [*counts.lowest, *counts.highest]] if result.n <= MAX_READ else []
    texts = datasets.read_texts(args.votes, names).examples if names else {}
    ranked = counts.lines({item: example.claim for item, example in texts.items()})
    lines = [f"{counts.n:,} claims", *counts.count_lines(), *shares, result.sentence, *certainty, *hints, *ranked]
    print_result(SCHEMA | results, [*filter(None, lines), f"{result.n} rows scored: {out}"], as_json=args.json)


def prior_and_rule_of_texts(fitted: "model.Model", options: "model.ScoreOptions") -> Results:
    """Return the prior and the rule of decision of texts."""
    rule = fitted.rule.sentence(fitted.threshold(options.prior))
    return {"prior": asking.prior_of_texts(fitted, options), "rule": rule}


def print_scored(
    args: argparse.Namespace,
    scored: "Iterator[list[asking.Scored]]",
    columns: "dict[str, model.ItemColumn]",
    more: Results,
) -> None:
    """Write scored examples, or print the one of a pair. `more` goes into the result; its `prior` is printed too."""
    if args.with_texts:
        texts = list(model.TEXT_COLUMNS)
        scored = (
            [replace(one, columns=one.columns | {name: getattr(one.example, name) for name in texts}) for one in some]
            for some in scored
        )
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


# The word in place of files, where the votes are simulated.
SIMULATED = "simulated"

NOTICE = (
    "These votes are SIMULATED from the operating points that the DEEP paper publishes; no LLM was called. "
    "Give your own with --votes."
)


def origin_of(args: argparse.Namespace) -> str | list[str]:
    """Return the tables of votes, or 'simulated'."""
    return list(args.votes) or SIMULATED


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
        scales = datasets.declared_scales([*in_votes], [*in_scores]) if score_tables else None
        votes = datasets.read_votes(args.votes, ignore=ignored, scales=scales)
        if "max_failure_rate" in args:
            votes = _without_failing(votes, args)
    else:
        votes = datasets.simulate_votes(args.seed)
        unknown = [name for name in args.ignore if name not in in_scores]
        if unknown:
            raise InputError(f"`ignore` must name columns of --votes or --scores. Got {unknown[0]!r}, and no --votes.")
    if not score_tables:
        return votes, None
    scores = datasets.read_scores(score_tables, ignore=[name for name in args.ignore if name in in_scores])
    own_scales = datasets.declared_scales(scores.score_names, votes.voter_names)
    ranges = datasets.score_ranges(scores.score_names, scores.scores, own_scales)
    return votes, replace(datasets.join_scores(votes, scores), ranges=ranges)


def _without_failing(votes: VoteMatrix, args: argparse.Namespace) -> VoteMatrix:
    """Return the votes of voters that fail on at most `--max-failure-rate` of each dataset; warn of the others."""
    worst = datasets.worst_failures(datasets.read_reasons(args.votes, votes))
    failing_voters = {name: each for name, each in worst.items() if each.rate > args.max_failure_rate}
    other_voters = [name for name in votes.voter_names if name not in failing_voters]
    for each in failing_voters.values():
        # Rounded up, so that the rate that is named lets the judge pass.
        says, enough = datasets.failing_words(each, args.max_failure_rate), math.ceil(100 * each.rate) / 100
        remedy = f"`deep ask --retry-failed` asks again; --max-failure-rate {enough:g} accepts it"
        if args.strict or not other_voters:
            raise InputError(
                f"`votes` must come from voters that seldom fail. Got one that fails more often: {says}. {remedy}."
            )
        note(f"warning: left out: {says}. {remedy}; --strict ends here.")
    if not failing_voters:
        return votes
    return votes.judges([votes.voter_names.index(name) for name in other_voters])


def read_fit_data(args: argparse.Namespace) -> tuple[VoteMatrix, str | None, dict[str, object]]:
    """Read what the options name.

    Returns
    -------
    votes : VoteMatrix
        Of the chosen datasets; where there are any, with labels, and with grades and scores as answers.
    target : str, optional
        The dataset that `--labels` is of.
    provenance : dict
        Where all of it came from.

    Raises
    ------
    InputError
        There are neither votes nor `--simulated`, or both, a table cannot be used, or labels are of several datasets.
    """
    if not args.votes and not args.simulated:  # grades and scores are answers as votes are
        args.votes, args.scores = args.scores, []
    if bool(args.votes) == args.simulated:
        what = "both" if args.votes else "neither"
        raise InputError(f"`VOTES` or `simulated` must be given. Got {what}. Give tables of votes, grades or scores.")
    all_votes, soft = read_votes_and_scores(args)
    if soft is not None:  # a label known beside the scores is known
        all_votes = all_votes.with_columns(labels=soft.labels)
    votes = datasets.choose_datasets(all_votes, only=args.only, exclude=args.exclude)
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
    if soft is not None:
        # Labels of the target are those of its own file and no others.
        joined_scores = datasets.join_scores(votes, replace(soft, labels=np.full_like(soft.labels, -1)))
        scales = datasets.declared_scales(soft.score_names, votes.voter_names)
        votes = votes.with_answers(joined_scores.scores, soft.score_names, scales)
    return votes, target, provenance


def _provenance(args: argparse.Namespace, votes: VoteMatrix) -> dict[str, object]:
    """Return the account of the votes for the model file: files, versions of voters, failures and licences."""
    licences, reasons = datasets.benchmark_licences(args.votes), datasets.read_reasons(args.votes, votes)
    worst, n = datasets.worst_failures(reasons), len(votes.votes)
    # A rate of failures is known only where every missing vote has its reason.
    voters = [name for name, count in datasets.missing_without_reason(votes, reasons).items() if not count]
    files = {name: [Path(path).name for path in getattr(args, name)] for name in ("votes", "labels", "scores")}
    return {
        **{name: value for name, value in files.items() if value},
        "votes": files["votes"] or SIMULATED,
        "voters": datasets.vote_details(args.votes),
        # By voter its highest share of failures on a dataset, and the items there.
        "failures": {name: [worst[name].rate, worst[name].n_items] if name in worst else [0.0, n] for name in voters},
        "licences": {name: licences[name] for name in votes.dataset_names if name in licences},
    }


def load_model(path: str | Path, decide: str | None, share: str | None = None) -> "model.Model":
    """Return the model of a file, with the rule of ``--decide`` and the belief of ``--share`` where they are given."""
    fitted = model.load(path).believing(share)
    return fitted if decide is None else fitted.deciding(decide)


def numbers_of_voters(words: Sequence[str], n_voters: int) -> list[int]:
    """Return the numbers that `--sizes` names; 'all' is `n_voters`."""
    wrong = [word for word in words if word != "all" and not word.isdecimal()]
    if wrong:
        raise InputError(f"`sizes` must hold positive whole numbers or 'all'. Got {wrong[0]!r}.")
    return [n_voters if word == "all" else int(word) for word in words]


# Answers to one question, or draws of a study: more than any of them needs, and a number mistyped takes years.
MOST_DRAWS = 10_000


def check_minimum(args: argparse.Namespace, **least: int) -> None:
    """Raise where an option is below the least value that it may have."""
    for name, low in least.items():
        if getattr(args, name) < low:
            raise InputError(f"`{name}` must be {low} or more. Got {getattr(args, name)}.")


def check_draws(args: argparse.Namespace, name: str) -> None:
    """Raise where an option is no number of answers or draws from 1 to `MOST_DRAWS`."""
    check_minimum(args, **{name: 1})
    if getattr(args, name) > MOST_DRAWS:
        raise InputError(f"`{name}` must be at most {MOST_DRAWS:,}. Got {getattr(args, name)}.")


@contextmanager
def naming_option(option: str) -> Iterator[None]:
    """Name the command's own option in an error about the argument `examples` of a function that reads files."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("`examples`", f"`{option}`")) from None


def column_map(args: argparse.Namespace) -> Mapping[str, str]:
    """Return field to column, for the columns that have another name."""
    return {
        name.removesuffix("_column"): column
        for name, column in topic_values(_options.ExampleColumns, args).items()
        if name != "main_only"
    }


def examples_from(args: argparse.Namespace, name: str, *, require_source: bool = True) -> "datasets.Examples":
    """Return the examples that a name or a path means, read as the options say."""
    return datasets.read_examples(
        name, columns=column_map(args), main_only=args.main_only, require_source=require_source
    )


def offline_judges(args: argparse.Namespace) -> "list[Judge]":
    """Return the judges that the options name.

    Raises
    ------
    InputError
        There is no check or model of that name.
    MissingDependencyError
        A model is asked for and the libraries to run it are not installed.
    """
    return [
        *asking.judges_of("lexical", args.lexical),
        *asking.judges_of("encoder", args.encoder),
        *asking.judges_of("embedding", args.embedding),
    ]


def few_shot_of(args: argparse.Namespace, examples: str | None = None) -> "prompt_pool.FewShot | None":
    """Return the labeled examples of ``--few-shot`` and ``--shots``; None where there are none."""
    if args.few_shot is None:
        if args.shots is not None:
            raise InputError(f"`shots` must be given with `few_shot`. Got {args.shots} without.")
        return None
    return asking.read_few_shot(args.few_shot, 4 if args.shots is None else args.shots, examples=examples)


def shots_for(args: argparse.Namespace, source: str, claim: str) -> "Sequence[Example]":
    """Return the labeled examples of ``--few-shot`` that a prompt shows with one source and claim."""
    few_shot = few_shot_of(args)
    return () if few_shot is None else few_shot.choose(Example(source, claim, "1"))


def read_text(path: str, option: str) -> str:
    """Return the text of a file; ``-`` is standard input.

    Raises
    ------
    InputError
        The file cannot be read, is larger than 64 MiB, or is not UTF-8.
    """
    try:
        # One byte more than is allowed shows that there is more.
        raw = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1) if path == "-" else read_bytes(path, option)
        if len(raw) > MAX_TEXT_BYTES:
            raise InputError(f"`{option}` must have at most {MAX_TEXT_BYTES:,} bytes. Got more in {path!r}.")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`{option}` must be UTF-8. Got byte {error.start} of {path!r}.") from None
    except OSError as error:
        raise InputError(f"`{option}` must be a readable file. Got {path!r}: {error.strerror}.") from None


def finder_of(args: argparse.Namespace, examples: str | None = None) -> "asking.Finder":
    """Return where the judges of a model file are looked for."""
    llm, sampling = next(iter(args.llm), None), sampling_of(args, examples)
    return asking.Finder(args.prompt, args.encoder, llm, args.allow_mismatch, sampling, args.judge)


def workers_of(args: argparse.Namespace) -> int | None:
    """Return the calls of a function side by side; None where each says it itself."""
    return int(args.concurrency) if args.concurrency.isdigit() else None


def check_nothing_asked(args: argparse.Namespace, reason: str, *topics: type) -> None:
    """Raise where an option of asking LLMs is given to a run that asks none.

    Parameters
    ----------
    args : Namespace
        The parsed command line.
    reason : str
        Why nothing is asked, for the error: with what, or without.
    *topics : type
        Further options of the command that matter to LLMs alone.
    """
    for name in options_given(args, *_options.PROMPT_TOPICS, *topics):
        raise InputError(f"`{name}` must be given where LLMs are asked. Got it {reason}.")


def sampling_of(args: argparse.Namespace, examples: str | None = None) -> "asking.Sampling":
    """Return how prompts are asked; options that the command does not have keep their defaults.

    Parameters
    ----------
    args : Namespace
        The parsed command line.
    examples : str, optional
        Where the texts of labeled examples are, if ``--few-shot`` is a table of votes that does not remember them.
    """
    chunk = None if args.chunk is None else prompt_pool.Chunking.parse(args.chunk)
    few_shot, repair = few_shot_of(args, examples), args.repair is not False
    return asking.Sampling(
        **topic_values(asking.Sampling, args) | {"repair": repair, "few_shot": few_shot, "chunk": chunk}
    )


def check_models(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the LLMs, at least one, with names that can be written down."""
    if not args.llm:
        raise InputError("`llm` must be given. Got none.")
    # It would be two columns of one name.
    twice = [name for name in args.llm if args.llm.count(name) > 1]
    if twice:
        raise InputError(f"`llm` must name each LLM once. Got {twice[0]!r} twice.")
    for name in args.llm:
        check_name(name, "llm")
    if args.endpoint_name:
        check_name(args.endpoint_name, "endpoint_name")
    return tuple(args.llm)


def endpoint_of(args: argparse.Namespace) -> str:
    """Return the endpoint's name in the ledger."""
    return args.endpoint_name or llm.public_url(asking.base_url_from(args.base_url))


def ask_options(args: argparse.Namespace, out: Path) -> "asking.AskOptions":
    """Return how to ask, from the options of `CALL_TOPICS`; those not given keep their defaults.

    Parameters
    ----------
    args : Namespace
        The parsed command line.
    out : Path
        The file that the command writes; the ledger lies beside it unless one is given.
    """
    # A ledger is named after its votes, so that two commands in one folder have two.
    beside = f"{out.stem if out.suffix == '.parquet' else out.name}.ledger.sqlite"
    ledger = args.ledger or str(out.parent / beside)
    # The ledger keeps the options of a run, as JSON and without secrets.
    record = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    record |= {"ledger": llm.describe_ledger(ledger), "base_url": llm.public_url(asking.base_url_from(args.base_url))}
    more = {name: vars(args)[name] for name in ("repair", "max_failure_rate") if vars(args).get(name) is not None}
    return asking.AskOptions(**topic_values(asking.AskOptions, args) | more | {"ledger": ledger, "record": record})


def options_given(args: argparse.Namespace, *topics: type) -> list[str]:
    """Return the names of the options of some topics that are not at their defaults.

    Values are not returned: an address or a ledger may hold a secret, which no error repeats.
    """
    options = (one for topic in topics for one in options_of(topic))
    return [one.name for one in options if getattr(args, one.name, one.default) != one.default]

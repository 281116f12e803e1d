"""The options that several commands have in common, each written once."""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep._util.files import LARGEST_TEXT, read_bytes
from deep._util.names import check_name
from deep.calibration import CALIBRATOR_CLASSES, NETCAL_CLASSES
from deep.console._output import live_progress
from deep.console._parser import Values
from deep.datasets import Examples, read_examples
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import InputError, StoppedError
from deep.records import Example

if TYPE_CHECKING:
    from deep.asking import AskOptions, Calls, Entry, Finder, ProgramId, Sampling
    from deep.judges import Judge
    from deep.model import Model
    from deep.prompt_pool import FewShot


UNCALIBRATED = "none"
"""In place of a calibrator's name: the ensembler's own probabilities."""

CONSTRAINTS = ("none", "schema", "vllm")
"""How an endpoint is told the answers that a reply is chosen from."""

OWN_FITS = ("Average", "Stack")
"""deep's own ways to add up votes, beside the ensemblers."""

RECIPES = ("deep", "paper")
SELECTORS = ("auto", "exhaustive", "mrmr", "mrmr-selection", "rfe")
STRATEGIES = ("design", "random", "spread")
"""How `deep label list` chooses items."""

SEVERAL: dict[str, Any] = {"action": Values, "nargs": "+", "default": []}
"""The settings of an option that takes several values."""

MOST_JOBS = 8
"""The most processes by default: each loads every library, and there are some fifty tasks at a time."""

MOST_DRAWS = 10_000
"""Answers to one question, or draws of a study: more than any of them needs, and a number mistyped takes years."""

MOST_RESAMPLES = 1_000_000
"""Of an interval: its ends then move by a thousandth of its width, and more take hours or all memory."""


def resamples(word: str) -> int:
    """Return a number of resamples that can be drawn."""
    if (n := int(word)) > MOST_RESAMPLES:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_RESAMPLES:,}. Got {n}")
    return n


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "votes": SEVERAL | {"metavar": "FILE", "help": "tables of votes (CSV, Parquet); default: simulated"},
    "scores": SEVERAL | {"metavar": "FILE", "help": "tables of encoder scores"},
    "range": SEVERAL
    | {
        "metavar": "NAME=LOW:HIGH",
        "help": "what a scorer can give, for its centre; those of the paper are known",
    },
    "ignore": SEVERAL | {"metavar": "COLUMN", "help": "columns that are no voters"},
    "sizes": SEVERAL | {"metavar": "N", "default": ["3", "5", "9"], "help": "numbers of voters, or 'all'"},
    "selector": {"default": "auto", "choices": SELECTORS, "help": "how the voters are selected"},
    "ensembler": SEVERAL
    | {"metavar": "NAME", "help": f"of: {', '.join(ENSEMBLER_NAMES)}; default: those of the paper"},
    "calibrator": SEVERAL
    | {
        "metavar": "NAME",
        "help": f"of: {', '.join(CALIBRATOR_CLASSES)}, {UNCALIBRATED} (default: all), {', '.join(NETCAL_CLASSES)}",
    },
    "recipe": {"default": "deep", "choices": RECIPES, "help": "how a chain is chosen and fitted"},
    "max-failure-rate": {
        "type": float,
        "default": 0.05,
        "metavar": "SHARE",
        "help": "leave out voters that fail on more of a dataset, by the reasons beside the votes",
    },
    "strict": {"action": "store_true", "help": "end with an error where a voter would be left out"},
    "n-boot": {"type": resamples, "default": 10_000, "metavar": "N", "help": "resamples of every interval"},
    "seed": {"type": int, "default": 0, "metavar": "N", "help": "seed of every random draw"},
    "jobs": {
        "type": int,
        "metavar": "N",
        "help": "processes, half a gigabyte of memory each; the results do not depend on it (default: one a core, at "
        f"most {MOST_JOBS})",
    },
    "share": {
        "metavar": "LOW-HIGH",
        "help": "what you believe of the share of consistent items, sure to 90 %%, as in 60-80%%; joined to what the "
        "votes say, and refused where labels contradict it",
    },
    "dataset": {
        "metavar": "NAME",
        "help": "the dataset of tables that have no column dataset, or of moments of several",
    },
    "decide": {
        "metavar": "RULE",
        "help": "when an item is called consistent: balanced, accuracy, cost=FP:FN, precision=SHARE or recall=SHARE "
        "(the last two by labels); default: the model's, else balanced",
    },
    "allow-mismatch": {"action": "store_true", "help": "take votes of another prompt version or model"},
    "allow-missing": {"action": "store_true", "help": "a voter without a column has no vote"},
    "json": {"action": "store_true", "help": "print JSON and nothing else"},
}


def add_options(
    parser: "argparse.ArgumentParser | argparse._ArgumentGroup", *names: str, **changes: Mapping[str, object]
) -> None:
    """Add shared options by name.

    Parameters
    ----------
    parser : ArgumentParser
    *names : str
        Keys of `OPTIONS`.
    **changes : mapping
        By name, with _ for -: settings that differ in this command; `flags` are all the names of the option.
    """
    for name in names:
        settings: dict[str, Any] = {**OPTIONS[name], **changes.get(name.replace("-", "_"), {})}
        if name == "jobs":  # by the machine the command runs on
            settings["default"] = min(os.cpu_count() or 1, MOST_JOBS)
        parser.add_argument(*settings.pop("flags", [f"--{name}"]), **settings)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    add_options(parser, "json")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the model file, the first word of many commands."""
    parser.add_argument("model", metavar="MODEL", help="a model file that `deep fit` wrote")


def load_model(path: str | Path, decide: str | None, share: str | None = None) -> "Model":
    """Return the model of a file, with the rule of ``--decide`` and the belief of ``--share`` where they are given."""
    from deep.model import load

    fitted = load(path).believing(share)
    return fitted if decide is None else fitted.deciding(decide)


def add_target_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the tables of the one dataset that a model is used on; those of votes by place or by name."""
    votes: dict[str, object] = {"help": "votes of the whole dataset"}
    by_place = {"nargs": "*", "default": argparse.SUPPRESS, "metavar": "VOTES", "flags": ["votes"]}
    either = parser.add_mutually_exclusive_group(required=required)
    add_options(either, "votes", votes=votes | by_place)
    add_options(either, "votes", votes=votes)
    scores = {"help": "tables of soft scores, where the model was fitted on some"}
    add_options(parser, "dataset", "scores", scores=scores)
    labels = "labels of a random sample of it: item_id, label, and dataset where votes are of several"
    parser.add_argument("--labels", **SEVERAL, metavar="FILE", help=labels)


def options_given(args: argparse.Namespace, *adders: Callable[[argparse.ArgumentParser], None]) -> list[str]:
    """Return the names of the options, of those that some functions add, that are not at their defaults.

    Values are not returned: an address or a ledger may hold a secret, which no error repeats.
    """
    parser = argparse.ArgumentParser()
    for add in adders:
        add(parser)
    defaults = vars(parser.parse_args([]))
    return [name for name, default in defaults.items() if getattr(args, name, default) != default]


def numbers_of_voters(words: Sequence[str], n_voters: int) -> list[int]:
    """Return the numbers that `--sizes` names; 'all' is `n_voters`."""
    wrong = [word for word in words if word != "all" and not word.isdecimal()]
    if wrong:
        raise InputError(f"`sizes` must hold positive whole numbers or 'all'. Got {wrong[0]!r}.")
    return [n_voters if word == "all" else int(word) for word in words]


def check_least(args: argparse.Namespace, **least: int) -> None:
    """Raise where an option is below the least value that it may have."""
    for name, low in least.items():
        if getattr(args, name) < low:
            raise InputError(f"`{name}` must be {low} or more. Got {getattr(args, name)}.")


def check_draws(args: argparse.Namespace, name: str) -> None:
    """Raise where an option is no number of answers or draws from 1 to `MOST_DRAWS`."""
    check_least(args, **{name: 1})
    if getattr(args, name) > MOST_DRAWS:
        raise InputError(f"`{name}` must be at most {MOST_DRAWS:,}. Got {getattr(args, name)}.")


@contextmanager
def named(option: str) -> Iterator[None]:
    """Name the command's own option in an error about the argument `examples` of a function that reads files."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("`examples`", f"`{option}`")) from None


FIELDS = ("source", "claim", "question", "label", "example_id", "dataset", "document_id")
HELP = "a benchmark (`deep data list`), or a CSV, JSONL or Parquet file with the columns source and claim"


def add_example_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--source-column`` and its siblings, and ``--main-only``."""
    group = parser.add_argument_group("columns of a file of examples")
    for field in FIELDS:
        option = f"--{field.replace('_', '-')}-column"
        group.add_argument(option, metavar="NAME", help=f"the column that holds {field}, if it has another name")
    group.add_argument("--main-only", action="store_true", help="TofuEval: leave out summaries of marginal topics")


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Add ``--strict``."""
    parser.add_argument("--strict", action="store_true", help="end with an error where a row has no source or no claim")


def column_map(args: argparse.Namespace) -> Mapping[str, str]:
    """Return field to column, for the columns that have another name."""
    given = {field: getattr(args, f"{field}_column") for field in FIELDS}
    return {field: column for field, column in given.items() if column is not None}


def examples_from(args: argparse.Namespace, name: str, *, require_source: bool = True) -> Examples:
    """Return the examples that a name or a path means, read as the options say."""
    return read_examples(name, columns=column_map(args), main_only=args.main_only, require_source=require_source)


def add_offline_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--lexical``, ``--encoder`` and ``--embedding``."""
    group = parser.add_argument_group("judges that need no key")
    group.add_argument("--lexical", **SEVERAL, metavar="NAME", help="lexical checks by name, or all of them: all")
    model = "by id on the hub or by folder; NAME=FOLDER gives it another name"
    ways = "before it, WAY: of summac-zs, minicheck, hhem, lettucedetect uses it as published"
    group.add_argument("--encoder", **SEVERAL, metavar="ID|FOLDER", help=f"NLI or consistency models, {model}; {ways}")
    group.add_argument("--embedding", **SEVERAL, metavar="ID|FOLDER", help=f"sentence-embedding models, {model}")


def offline_judges(args: argparse.Namespace) -> "list[Judge]":
    """Return the judges that the options name.

    Raises
    ------
    InputError
        There is no check or model of that name.
    MissingDependencyError
        A model is asked for and the libraries to run it are not installed.
    """
    from deep.asking import judges_of

    return [
        *judges_of("lexical", args.lexical),
        *judges_of("encoder", args.encoder),
        *judges_of("embedding", args.embedding),
    ]


def add_few_shot_options(parser: argparse.ArgumentParser) -> None:
    """Add the labeled examples that prompts show."""
    add = parser.add_argument
    shown = "labeled examples, or a table of votes with labels, of which prompts show some; none of the same dataset"
    add("--few-shot", metavar="FILE", help=shown)
    add("--shots", type=int, metavar="N", help="how many of them, half of each label (default 4)")


def few_shot_of(args: argparse.Namespace, examples: str | None = None) -> "FewShot | None":
    """Return the labeled examples of ``--few-shot`` and ``--shots``; None where there are none."""
    from deep.asking import read_few_shot

    if args.few_shot is None:
        if args.shots is not None:
            raise InputError(f"`shots` must be given with `few_shot`. Got {args.shots} without.")
        return None
    return read_few_shot(args.few_shot, 4 if args.shots is None else args.shots, examples=examples)


def shots_for(args: argparse.Namespace, source: str, claim: str) -> "Sequence[Example]":
    """Return the labeled examples of ``--few-shot`` that a prompt shows with one source and claim."""
    few_shot = few_shot_of(args)
    return () if few_shot is None else few_shot.choose(Example(source, claim, "1"))


def add_batch_file_options(parser: argparse.ArgumentParser) -> None:
    """Add where batch files are written to and read from."""
    files = parser.add_argument_group("batch files, for engines that run them (docs/votes.md)")
    out = "write what is to be asked as OpenAI batch files, one LLM a file, and send nothing"
    files.add_argument("--batch-out", type=Path, metavar="FOLDER", help=out)
    into = "enter the results in the .jsonl files of a folder, in part and in any order"
    files.add_argument("--batch-in", type=Path, metavar="FOLDER", help=into)
    files.add_argument("--shard-requests", type=int, metavar="N", help="requests a file (default 50000)")
    files.add_argument("--shard-mb", type=float, metavar="MB", help="MiB a file (default 190)")


def read_text(path: str, option: str) -> str:
    """Return the text of a file; ``-`` is standard input.

    Raises
    ------
    InputError
        The file cannot be read, is larger than 64 MiB, or is not UTF-8.
    """
    try:
        raw = sys.stdin.buffer.read(LARGEST_TEXT + 1) if path == "-" else read_bytes(path, option)
        if len(raw) > LARGEST_TEXT:
            raise InputError(f"`{option}` must have at most {LARGEST_TEXT:,} bytes. Got more in {path!r}.")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`{option}` must be UTF-8. Got byte {error.start} of {path!r}.") from None
    except OSError as error:
        raise InputError(f"`{option}` must be a readable file. Got {path!r}: {error.strerror}.") from None


def add_call_options(parser: argparse.ArgumentParser) -> None:
    """Add where to ask, how fast, for how much, and where the ledger is; `--llm` may be repeated."""
    add = parser.add_argument
    add("--llm", **SEVERAL, metavar="NAME", help="LLMs, as the endpoint names them")
    add("--base-url", metavar="URL", help="an OpenAI-compatible endpoint (default: OPENAI_BASE_URL, or OpenAI)")
    add("--endpoint-name", metavar="NAME", help="its name in the ledger, if its address may change")
    add("--api-key-env", default="OPENAI_API_KEY", metavar="VARIABLE", help="where the key is (default OPENAI_API_KEY)")
    add("--ledger", metavar="FILE|URL", help="default: OUT with .ledger.sqlite for its ending")
    add("--concurrency", default="auto", metavar="auto|N", help="requests in flight (default auto: 2, then by trial)")
    add("--rpm", type=float, metavar="N", help="requests a minute")
    add("--tpm", type=float, metavar="N", help="tokens a minute")
    add("--budget", type=float, metavar="USD", help="stop before the ledger's total can pass this")
    add("--prices", metavar="FILE", help="TOML of dollars per million tokens, before the published prices")
    add("--batch", action="store_true", help="use the Batch API")
    add("--poll", type=float, default=30.0, metavar="S", help="seconds between looks at a batch (default 30)")
    add("--timeout", type=float, default=120.0, metavar="S", help="seconds for one attempt (default 120)")
    add("--max-attempts", type=int, default=10, metavar="N", help="attempts at one request (default 10)")
    add("--backoff", type=float, default=0.5, metavar="S", help="first wait before a retry, then doubled (default 0.5)")
    add("--retry-failed", **SEVERAL, metavar="CLASS", help="ask again what failed like this")
    add("--at-most-once", action="store_true", help="never repeat a request whose answer may have been lost")


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of :func:`add_call_options`, how prompts come to a readable answer, and what they show."""
    add_call_options(parser)
    parser.add_argument(
        "--repair",
        action=argparse.BooleanOptionalAction,
        help="ask once more where a reply to a prompt is unparsable (default: yes, but not with --batch or "
        "--at-most-once, nor for replies of earlier runs without; --repair: for these too)",
    )
    parser.add_argument(
        "--constrain",
        choices=CONSTRAINTS,
        default="schema",
        help="how an answer at once is held to the labels: by a JSON schema (default), by structured_outputs of vLLM "
        "0.12 or later, or not at all",
    )
    add_few_shot_options(parser)
    windows = "cut sources of more than SIZE characters into windows that overlap; about four are a token"
    parser.add_argument("--chunk", metavar="SIZE:OVERLAP", help=windows)


def add_own_judges(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the judges of a model file that are looked for in other places than deep."""
    add = parser.add_argument
    add("--prompt", metavar="FILE", **SEVERAL, help="TOML prompts besides those of deep, or folders")
    add("--encoder", metavar="DIR", **SEVERAL, help="folders of models that the hub does not have")
    add("--judge", metavar="MODULE:FUNCTION", **SEVERAL, help="functions that are judges; a model file imports none")


def finder_of(args: argparse.Namespace, examples: str | None = None) -> "Finder":
    """Return where the judges of a model file are looked for."""
    from deep.asking import Finder

    llm, sampling = next(iter(args.llm), None), sampling_of(args, examples)
    return Finder(args.prompt, args.encoder, llm, args.allow_mismatch, sampling, args.judge)


def calls_of(args: argparse.Namespace, out: Path | None) -> "Calls":
    """Return how functions are called; their answers are kept beside the ledger."""
    from deep.asking import Calls

    ledger = args.ledger or (None if out is None else _ledger_beside(out))
    return Calls(ledger, int(args.concurrency) if args.concurrency.isdigit() else None, args.budget)


def _ledger_beside(out: Path) -> str:
    name = out.stem if out.suffix == ".parquet" else out.name
    return str(out.parent / f"{name}.ledger.sqlite")


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Add how many answers are asked of a prompt, and how they are drawn."""
    add = parser.add_argument
    add("--samples", type=int, default=1, metavar="M", help="answers to each question")
    add("--soft", action="store_true", help="ask for log-probabilities, for soft votes beside the hard ones")
    add("--temperature", type=float, metavar="T", help="in place of the prompts' own")
    add("--max-tokens", type=int, metavar="N", help="in place of the prompts' own limit of the answer")


def check_nothing_asked(
    args: argparse.Namespace, given: str, *adders: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Raise where an option of asking LLMs is given to a run that asks none.

    Parameters
    ----------
    args : Namespace
    given : str
        Why nothing is asked, for the error: with what, or without.
    *adders : callable
        What added further options of the command that matter to LLMs alone.
    """
    for name in options_given(args, add_prompt_options, *adders):
        raise InputError(f"`{name}` must be given where LLMs are asked. Got it {given}.")


def sampling_of(args: argparse.Namespace, examples: str | None = None) -> "Sampling":
    """Return how prompts are asked; options that the command does not have keep their defaults.

    Parameters
    ----------
    args : Namespace
    examples : str, optional
        Where the texts of labeled examples are, if ``--few-shot`` is a table of votes that does not remember them.
    """
    from deep.asking import Sampling
    from deep.prompt_pool import Chunking

    given = {name: getattr(args, name, None) for name in Sampling._fields}
    given["repair"] = args.repair is not False
    given["few_shot"] = few_shot_of(args, examples)
    given["chunk"] = None if args.chunk is None else Chunking.parse(args.chunk)
    return Sampling(**{name: value for name, value in given.items() if value is not None})


def check_models(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the LLMs, at least one, with names that can be written down."""
    if not args.llm:
        raise InputError("`llm` must be given. Got none.")
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
    from deep.asking import base_url_from
    from deep.llm import public_url

    return args.endpoint_name or public_url(base_url_from(args.base_url))


def ask_options(args: argparse.Namespace, out: Path) -> "AskOptions":
    """Return how to ask, from the options of :func:`add_call_options`; those not given keep their defaults.

    Parameters
    ----------
    args : Namespace
    out : Path
        The file that the command writes; the ledger lies beside it unless one is given.
    """
    from deep.asking import AskOptions, base_url_from
    from deep.llm import describe_ledger, public_url

    ledger = args.ledger or _ledger_beside(out)
    record = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    record |= {"ledger": describe_ledger(ledger), "base_url": public_url(base_url_from(args.base_url))}
    given: dict[str, Any] = {field.name: getattr(args, field.name, None) for field in fields(AskOptions)}
    given |= {"ledger": ledger, "record": record}
    return AskOptions(**{name: value for name, value in given.items() if value is not None})


def ask_programs(args: argparse.Namespace, programs: "Callable[[], Iterable[Entry]]") -> "dict[ProgramId, Any]":
    """Run programs to their end as the options of :func:`add_call_options` say, and return the value of each.

    Raises
    ------
    StoppedError
        The run was stopped before.
    """
    from deep.asking import run_programs

    options = ask_options(args, args.out)
    args.out.absolute().parent.mkdir(parents=True, exist_ok=True)  # where the ledger lies
    with live_progress() as progress:
        outcome, values = run_programs(programs, options, endpoint=endpoint_of(args), progress=progress)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    return values

"""The options of commands, a dataclass a topic: what each is for says its docstring."""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, ClassVar

from deep._util.entry_points import JUDGE_GROUP, WRITER_GROUP, find_entry_points
from deep._util.options import Option, argument, option, options_of
from deep.asking import AskOptions, PromptOptions
from deep.console._parser import Values, add_option
from deep.model import ChainOptions, ScoreOptions

# The most processes by default: each loads every library, and there are some fifty tasks at a time.
MOST_JOBS = 8


# The most resamples of an interval: its ends then move by a thousandth of its width, and more fill memory.
MOST_RESAMPLES = 1_000_000


def resamples(word: str) -> int:
    """Return a number of resamples that can be drawn."""
    if (n := int(word)) > MOST_RESAMPLES:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_RESAMPLES:,}. Got {n}")
    return n


@dataclass(frozen=True)
class TableOptions:
    """Tables of votes and scores, and what their columns are.

    Parameters
    ----------
    votes : tuple of str
        Tables of votes (CSV, Parquet); default: simulated.
    scores : tuple of str
        Tables of soft scores, if the model was fitted on some.
    ignore : tuple of str
        Columns to ignore; judges also by their short names.
    dataset : str, optional
        Name of the dataset, if the tables have no column dataset; which one, if moments have several.
    scale : tuple of str
        Scales of judges that give grades or scores, by name or pattern: 'gpt-*=1-5', 'x=5-1' where 5 is the worst,
        'x=A-E', 'x=bad<good', 'x=-3..0', 'x=unit', 'x=binary'; default: by their values.
    max_failure_rate : float, default=0.05
        Leave out a voter that fails on a larger share of a dataset.
    strict : bool, default=False
        Stop with an error instead of leaving a voter out.
    """

    votes: tuple[str, ...] = option((), "FILE")
    scores: tuple[str, ...] = option((), "FILE")
    ignore: tuple[str, ...] = option((), "COLUMN")
    dataset: str | None = option(None, "NAME")
    scale: tuple[str, ...] = option((), "NAME=SCALE")
    max_failure_rate: float = option(0.05, "SHARE", rare=True)
    strict: bool = option(False, rare=True)


@dataclass(frozen=True)
class Computation:
    """Resamples, seed and processes.

    Parameters
    ----------
    n_boot : int, default=10000
        Resamples of every interval.
    random_state : int, default=0
        Seed of every random draw.
    n_jobs : int, default=1
        Processes; -1 for one a core. Results do not depend on it. A script that asks for more than one needs its
        ``if __name__ == "__main__"``.
    """

    n_boot: int = option(10_000, "N", type=resamples, rare=True)
    random_state: int = option(0, "N", flags=["--seed"], rare=True)
    n_jobs: int = option(
        1,
        "N",
        flags=["--jobs"],
        rare=True,
        # Asked as the parser is made, on the machine that runs the command.
        default=lambda: min(os.cpu_count() or 1, MOST_JOBS),
        help="processes, half a gigabyte of memory each; the results do not depend on it (default: one a core, at most "
        f"{MOST_JOBS})",
    )


@dataclass(frozen=True)
class DecideOptions:
    """When an item is called consistent, and what is known of how many are.

    Parameters
    ----------
    decide : str, optional
        When an item is called consistent: balanced, accuracy, cost=FP:FN, precision=SHARE or recall=SHARE (the last
        two need labels); default: the model's, else balanced.
    share : str, optional
        Your prior for the share of consistent items (90 % range), as in 60-80%; rejected if labels contradict it.
    """

    decide: str | None = option(None, "RULE")
    share: str | None = option(None, "LOW-HIGH")


@dataclass(frozen=True)
class LabelOptions:
    """Labels that people gave.

    Parameters
    ----------
    labels : tuple of str
        People's labels, instead of the labels beside the votes: item_id, label; item_id, annotator, label; or a
        column a
        person.
    people : tuple of str
        The columns of the labels that hold one person's labels each.
    consistent_from : float, optional
        The lowest of people's grades that means consistent.
    """

    labels: tuple[str, ...] = option((), "FILE")
    people: tuple[str, ...] = option((), "COLUMN")
    consistent_from: float | None = option(None, "GRADE")


@dataclass(frozen=True)
class OutputOptions:
    """Comparison, events and JSON.

    Parameters
    ----------
    compare : str, optional
        Compare the systems named in this column of the votes; file: each table is a system.
    otel : bool, default=False
        Send an OpenTelemetry event gen_ai.evaluation.result for each item to OTEL_EXPORTER_OTLP_ENDPOINT.
    json : bool, default=False
        Print JSON and nothing else.
    """

    compare: str | None = option(None, "COLUMN")
    otel: bool = option(False, rare=True)
    json: bool = option(False)


@dataclass(frozen=True)
class JudgeOptions:
    """Judges that ask LLMs, and functions.

    Parameters
    ----------
    pool : tuple of str
        Pools of prompts, or folders of them. deep-9 needs an LLM that follows steps; begin a small one with --prompt.
    prompt : tuple of str
        Prompts by id, or TOML files. For a small LLM: yes-no fect-basic-direct-json.
    """

    heading: ClassVar[str] = "judges that ask LLMs, and functions"

    pool: tuple[str, ...] = option((), "NAME")
    prompt: tuple[str, ...] = option((), "ID")
    judge: tuple[str, ...] = option(
        (),
        "NAME",
        # Only where help is printed: it reads the metadata of all packages that are installed.
        help=lambda: f"functions as MODULE:FUNCTION, or of: {', '.join(sorted(find_entry_points(JUDGE_GROUP).usable))}",
    )


@dataclass(frozen=True)
class OfflineJudges:
    """Judges that ask no LLM.

    Parameters
    ----------
    lexical : tuple of str
        Lexical checks by name, or all of them: all.
    encoder : tuple of str
        NLI or consistency models, by id on the hub, or as FOLDER or NAME=FOLDER; WAY:ID applies it as published
        (summac-zs, minicheck, hhem, lettucedetect).
    embedding : tuple of str
        sentence-embedding models, by id on the hub, or as FOLDER or NAME=FOLDER.
    """

    heading: ClassVar[str] = "judges that need no key"

    lexical: tuple[str, ...] = option((), "NAME")
    encoder: tuple[str, ...] = option((), "ID|FOLDER")
    embedding: tuple[str, ...] = option((), "ID|FOLDER", rare=True)


@dataclass(frozen=True)
class OwnJudges:
    """The judges of a model file that are looked for in other places than deep.

    Parameters
    ----------
    prompt : tuple of str
        Your own TOML prompts, or folders of them.
    encoder : tuple of str
        Local folders of models.
    judge : tuple of str
        Functions used as judges; a model file does not import them.
    """

    heading: ClassVar[str] = "judges of text"

    prompt: tuple[str, ...] = option((), "FILE", rare=True)
    encoder: tuple[str, ...] = option((), "DIR", rare=True)
    judge: tuple[str, ...] = option((), "MODULE:FUNCTION", rare=True)


@dataclass(frozen=True)
class FewShotOptions:
    """The labeled examples that prompts show.

    Parameters
    ----------
    few_shot : str, optional
        Labeled examples, or a table of votes with labels; prompts show some, from other datasets only.
    shots : int, optional
        How many labeled examples, half of each label (default 4).
    """

    heading: ClassVar[str] = PromptOptions.heading

    few_shot: str | None = option(None, "FILE")
    shots: int | None = option(None, "N", rare=True)


@dataclass(frozen=True)
class Endpoint:
    """Whom to ask, and how the ledger calls where.

    Parameters
    ----------
    llm : tuple of str
        LLMs, as the endpoint names them.
    endpoint_name : str, optional
        Ledger name of this endpoint, if the URL can change.
    """

    heading: ClassVar[str] = AskOptions.heading

    llm: tuple[str, ...] = option((), "NAME")
    endpoint_name: str | None = option(None, "NAME", rare=True)


CALL_TOPICS = (Endpoint, AskOptions)
"""Where to ask, how fast, for how much, and where the ledger is."""

PROMPT_TOPICS = (*CALL_TOPICS, PromptOptions, FewShotOptions)
"""The topics of `CALL_TOPICS`, how prompts come to a readable answer, and what they show."""


def _column(name: str) -> Any:
    return option(None, "NAME", rare=True, help=f"the column that holds {name}, if it has another name")


@dataclass(frozen=True)
class ExampleColumns:
    """Which column of a file of examples is what.

    Parameters
    ----------
    main_only : bool, default=False
        TofuEval: leave out summaries of marginal topics.
    """

    heading: ClassVar[str] = "columns of a file of examples"

    source_column: str | None = _column("source")
    claim_column: str | None = _column("claim")
    question_column: str | None = _column("question")
    label_column: str | None = _column("label")
    example_id_column: str | None = _column("example_id")
    dataset_column: str | None = _column("dataset")
    document_id_column: str | None = _column("document_id")
    main_only: bool = option(False, rare=True)


@dataclass(frozen=True)
class IncompleteRows:
    """Rows of examples that have nothing to judge.

    Parameters
    ----------
    strict : bool, default=False
        Stop with an error if a row has no source or no claim.
    """

    strict: bool = option(False, rare=True)


@dataclass(frozen=True)
class BatchFiles:
    """Where batch files are written to and read from.

    Parameters
    ----------
    batch_out : Path, optional
        Write the requests as OpenAI batch files, a file per LLM, and send nothing.
    batch_in : Path, optional
        Read results from the .jsonl files of this folder, complete or not, in any order.
    shard_requests : int, optional
        Requests a file (default 50000).
    shard_mb : float, optional
        MiB a file (default 190).
    """

    heading: ClassVar[str] = "batch files, for engines that run them (docs/votes.md)"

    batch_out: Path | None = option(None, "FOLDER", rare=True)
    batch_in: Path | None = option(None, "FOLDER", rare=True)
    shard_requests: int | None = option(None, "N", rare=True)
    shard_mb: float | None = option(None, "MB", rare=True)


@dataclass(frozen=True)
class ScoreInput:
    """Votes or texts to score, and the share at which they are.

    Parameters
    ----------
    votes : tuple of str
        Tables of votes.
    scores : tuple of str
        Tables of soft scores, if the model uses them.
    input : str, optional
        A benchmark, or a file with the columns source and claim.
    source : str, optional
        A text file; - for standard input.
    claim : str, optional
        A text file; - for standard input.
    source_text : str, optional
        Text, instead of --source.
    claim_text : str, optional
        Text, instead of --claim.
    question : str, optional
        The question that the claim answers, if there is one.
    question_text : str, optional
        Text, instead of --question.
    prior : float, optional
        Share of consistent rows; default: estimated for each dataset of --votes, the training mean for text.
    to : str, optional
        Write --out as JSON lines that Inspect's precomputed_scores reads; a row without a vote is left out.
    with_texts : bool, default=False
        Add the columns claim, source and question; for votes, from the examples that were judged.
    """

    heading: ClassVar[str] = "what to score"

    votes: tuple[str, ...] = option((), "FILE")
    scores: tuple[str, ...] = option((), "FILE")
    input: str | None = option(None, "EXAMPLES")
    source: str | None = option(None, "FILE")
    claim: str | None = option(None, "FILE")
    source_text: str | None = option(None, "TEXT")
    claim_text: str | None = option(None, "TEXT")
    question: str | None = option(None, "FILE", rare=True)
    question_text: str | None = option(None, "TEXT", rare=True)
    prior: float | None = option(None, "P")
    to: str | None = option(None, choices=lambda: sorted(find_entry_points(WRITER_GROUP).usable), rare=True)
    with_texts: bool = option(False, rare=True)


@dataclass(frozen=True)
class Turns:
    """How judges of a text are asked one by one.

    Parameters
    ----------
    sequential : bool, default=False
        Stop when the other judges cannot change the decision.
    error_cost : float, optional
        Stop when asking costs more than it saves, at N per wrong decision: dollars if all prices are known, else calls.
    dry_run : bool, default=False
        Print the savings on the training data; send nothing.
    """

    heading: ClassVar[str] = "asking one by one"

    sequential: bool = option(False)
    error_cost: float | None = option(None, "N", rare=True)
    dry_run: bool = option(False, rare=True)


@dataclass(frozen=True)
class FitOptions:
    """The data that a model is learned from, and its file.

    Parameters
    ----------
    votes : tuple of str
        Tables of votes (CSV, Parquet).
    simulated : bool, default=False
        Learn from the embedded, simulated votes.
    out : Path, default=Path('model.json')
        The model.
    exclude : tuple of str
        Datasets to leave out.
    only : tuple of str
        The only datasets to learn from.
    """

    votes: tuple[str, ...] = option((), "VOTES", flags=["votes"], nargs="*")
    simulated: bool = option(False)
    out: Path = option(Path("model.json"), "FILE")
    exclude: tuple[str, ...] = option((), "DATASET")
    only: tuple[str, ...] = option((), "DATASET")


@dataclass(frozen=True)
class VotesOptions:
    """The file of votes, and ways to make it without asking.

    Parameters
    ----------
    out : Path, default=Path('votes.parquet')
        The vote matrix.
    dry_run : bool, default=False
        Print calls, tokens and cost, and send nothing.
    reread : bool, default=False
        Read the ledger's replies again, ask nothing, and list changed votes.
    sample : int, optional
        Judge N examples, drawn by their ids; a larger sample includes the smaller.
    from_ledger : str, optional
        Write the votes in this ledger, and ask nothing.
    """

    out: Path = option(Path("votes.parquet"), "FILE")
    dry_run: bool = option(False)
    sample: int | None = option(None, "N", rare=True)
    reread: bool = option(False, rare=True)
    from_ledger: str | None = option(None, "LEDGER", rare=True)


@dataclass(frozen=True)
class AdaptOptions:
    """The model of one dataset, and counts in place of its votes.

    Parameters
    ----------
    out : Path
        The model of the dataset, a .json file.
    moments : Path, optional
        Counts of `deep data moments`, instead of votes.
    """

    out: Path = option(MISSING, "FILE")
    moments: Path | None = option(None, "FILE")


@dataclass(frozen=True)
class CardOptions:
    """Contents of the cards of judges.

    Parameters
    ----------
    files : tuple of str
        Tables of votes (CSV, Parquet); default: simulated.
    examples : str, optional
        Texts and documents of the items; default: the examples that were judged.
    prices : tuple of str
        Dollars per vote of your own judges; other costs are in the judgments beside the votes.
    limit : int, default=20
        Number of disagreements to keep per judge.
    full : bool, default=False
        Print every figure of every judge, disagreements and doubtful labels too.
    no_worth : bool, default=False
        Do not measure what each judge adds, which takes k (k + 1) / 2 fits for k judges.
    exclude_own : bool, default=False
        Leave out votes on texts that an LLM of the judge's family wrote (column generator).
    out : Path, optional
        Write everything as JSON to this file too.
    """

    files: tuple[str, ...] = option((), "VOTES", flags=["files"], nargs="*")
    examples: str | None = option(None, "EXAMPLES")
    prices: tuple[str, ...] = option((), "JUDGE=USD")
    limit: int = option(20, "N")
    full: bool = option(False)
    no_worth: bool = option(False)
    exclude_own: bool = option(False)
    out: Path | None = option(None, "FILE")


# The options that commands take one by one, by name.
SHARED_OPTIONS = {
    one.dest: one
    for topic in (TableOptions, ChainOptions, Computation, DecideOptions, ScoreOptions, LabelOptions, OutputOptions)
    for one in options_of(topic)
}


# A function that adds options to a parser.
Adder = Callable[[Any], None]


def add_options(
    parser: "argparse.ArgumentParser | argparse._ArgumentGroup",
    *what: type | str | Option | Adder,
    **changes: Mapping[str, Any],
) -> None:
    """Add options.

    Parameters
    ----------
    parser : ArgumentParser
        Of one command, whose help lists options under the headings of their topics; or a group of its options.
    *what : type, str, Option or callable
        Dataclasses, of which all options are added; names of shared options, with - or _; one that no other command
        has; functions that add some.
    **changes : mapping
        By name: settings that differ in this command; `flags` are all the names of the option.
    """
    for each in what:
        if isinstance(each, type):
            options = list(options_of(each))
        elif isinstance(each, str):
            options = [SHARED_OPTIONS[each.replace("-", "_")]]
        elif isinstance(each, Option):
            options = [each]
        else:
            each(parser)
            continue
        for one in options:
            add_option(parser, one.changed(**changes.get(one.dest, {})))


def adder(*what: type | str | Option | Adder, **changes: Mapping[str, Any]) -> Adder:
    """Return the function `add_arguments` of a command that adds options; see :func:`add_options`."""
    return lambda parser: add_options(parser, *what, **changes)


MODEL_ARG = argument("model", "MODEL", "a model file that `deep fit` wrote")
"""The first word of many commands: a model file."""


def add_target_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the tables of the one dataset that a model is used on; those of votes by place or by name."""
    # Both ways fill `votes`: the one by place has no default, which would take the place of what the other has read.
    votes: dict[str, object] = {"help": "votes of the whole dataset"}
    by_place = {"flags": ["votes"], "action": Values, "nargs": "*", "default": argparse.SUPPRESS, "metavar": "VOTES"}
    either = parser.add_mutually_exclusive_group(required=required)
    add_options(either, "votes", votes=votes | by_place)
    add_options(either, "votes", votes=votes)
    labels = {"help": "labels of a random sample of it: item_id, label, and dataset where votes are of several"}
    add_options(parser, "dataset", "scores", "labels", labels=labels)

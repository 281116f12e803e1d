"""Votes out: the files that come of examples; the votes of a plan, written or read again; programs and their values."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from deep import datasets, llm
from deep._util.files import atomic_files, check_out, remember_state
from deep._util.scales import Scale
from deep.asking._options import AskOptions, AskProgress, ProgressCallback
from deep.asking._plan import Plan, judgments_of_plan
from deep.asking._replay import ProgramEntry, ProgramId, Replay, chunks
from deep.asking._run import FROM_LEDGER, RunOutcome, ask_requests, history_of
from deep.exceptions import InputError
from deep.prompt_pool import SearchableText
from deep.records import ABSTAIN, UNASKED_REASONS, Example, Judgment

if TYPE_CHECKING:
    import pyarrow as pa

    from deep.llm import Tally


TextPart = Literal["claim", "source"]

# Different passages of an example whose places are looked for, each in time by the length of its texts.
MAX_SOUGHT_LENGTH = 1000


class PassageFinder:
    """Finds passages in an example's source and claim; what does not count is that of :class:`SearchableText`.

    After the first `MAX_SOUGHT_LENGTH` different ones no further is looked for, and has no place.

    Parameters
    ----------
    example : Example
        Its source and its claim are searched.
    """

    def __init__(self, example: Example) -> None:
        self._texts: dict[TextPart, str] = {"claim": example.claim, "source": example.source}
        self._places: dict[tuple[str, bool], datasets.TextPlace | None] = {}

    def find(self, text: str, *, claim_first: bool) -> datasets.TextPlace | None:
        """Return the place of a passage, first of all in the claim, or else in the source."""
        key = text, claim_first
        if key not in self._places and len(self._places) < MAX_SOUGHT_LENGTH:
            parts: tuple[TextPart, ...] = ("claim", "source") if claim_first else ("source", "claim")
            self._places[key] = next(filter(None, (self._find(text, part) for part in parts)), None)
        return self._places.get(key)

    def _find(self, text: str, part: TextPart) -> datasets.TextPlace | None:
        start = self._texts[part].find(text)
        if start >= 0 and " " in text.strip():  # a whole chunk, as encoders give it: nothing needs folding
            return part, start, start + len(text)
        span = _searchable(self._texts[part]).find(text)
        return None if span is None else (part, *span)


# Returns a text as it is searched. Claims on one source follow each other, so that a few texts are enough.
_searchable = lru_cache(maxsize=16)(SearchableText)


def locate_evidence(judgment: Judgment, places: PassageFinder, *, claim_first: bool) -> tuple[datasets.Passage, ...]:
    """Return the evidence of a judgment, each piece with its place in the source or the claim.

    Parameters
    ----------
    judgment : Judgment
        Its evidence is what gets places.
    places : Places
        Of the example that was judged.
    claim_first : bool
        Where to look first, as :attr:`Plan.claim_first` says.
    """
    return datasets.passages_of(judgment.evidence, partial(places.find, claim_first=claim_first))


# A row of the file of judgments: an example, and its judgments by voter.
Row = tuple[Example, Mapping[str, Judgment]]


def output_paths(out: Path) -> dict[str, Path]:
    """Return the paths of the votes and of the files beside them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from deep.asking._write import output_paths
    >>> output_paths(Path("votes.parquet"))["reasons"].name
    'votes.reasons.parquet'
    """
    return {"votes": out, **{kind: datasets.file_beside(out, kind) for kind in datasets.KINDS_BESIDE}}


def check_outputs(out: Path, voters: Sequence[str]) -> Path:
    """Return a path that votes and the files beside them can be written to; hours later these are as they are now."""
    check_out(out, [".parquet"])
    for path in output_paths(out).values():
        # Votes of an earlier run stand in the ledger too; a table of another program may be the only one. Another
        # program may also have saved votes again, and left out who wrote them.
        is_other = path.is_file() and path.stat().st_size and not datasets.file_metadata(path)
        if is_other and (path != out or {*datasets.table_columns([str(path)])} - {*voters, *datasets.VOTE_COLUMNS}):
            got = f"{str(path)!r}, a table of others"
            raise InputError(f"`out` must be a new file, or votes that deep wrote. Got {got}. Name another.")
        remember_state(path)
    return out


def votes_path(out: Path, stopped: str | None) -> Path:
    """Return where the votes of a run are written: those of a stopped one not over those of a run that was not.

    Examples
    --------
    >>> votes_path(Path("votes.parquet"), "budget").name
    'votes.parquet'
    """
    finished = stopped is not None and out.is_file() and not datasets.file_metadata(out).get("stopped")
    return out.with_name(f"{out.stem}.partial{out.suffix}") if finished else out


def write_judgments(
    judged: Iterable[Row],
    voters: Sequence[str],
    out: Path,
    made: Mapping[str, object],
    soft: Sequence[str] = (),
    graders: Mapping[str, Scale] = MappingProxyType({}),
    *,
    documents: bool = True,
    claim_first: Collection[str] = frozenset(),
    free: Collection[str] = frozenset(),
) -> None:
    """Write votes, and their reasons and rationales beside them, as ``deep ask`` does: all files at once, at the end.

    Parameters
    ----------
    judged : iterable of (Example, mapping of voter to Judgment)
        One a row of the table, in its order; gone through once.
    voters : sequence of str
        The columns, in order; an example has no judgment of one that was not there to judge it.
    out : Path
        The Parquet file of votes; the others lie beside it.
    made : mapping
        How they came to be: it goes into the Parquet files under the key ``deep``, as JSON, with an id of the run.
        Readers of one of these files refuse another one of another run.
    soft : sequence of str
        The voters whose scores are written beside their votes; where there are none, no file of soft votes is left.
    graders : mapping of str to Scale
        The voters whose scores are their answers, and stand among the votes, as words where their scale has some.
    documents : bool, default=True
        Whether there is a column `document_id`.
    claim_first : collection of str
        The voters whose evidence is looked for in the claim before the source.
    free : collection of str
        The voters that cost nothing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.string()
    index = [("dataset", text), ("item_id", text), ("label", pa.int8())]
    index += [("document_id", text)] if documents else []
    types = {name: text if scale.words else pa.float64() for name, scale in graders.items()}
    schemas = {
        "reasons": pa.schema([("dataset", text), ("item_id", text), ("voter", text), ("reason", text)]),
        "votes": pa.schema([*index, *((voter, types.get(voter, pa.int8())) for voter in voters)]),
        "judgments": datasets.judgments_schema(),
    }
    if soft:
        schemas["soft"] = pa.schema([*index, *((voter, pa.float64()) for voter in soft)])
    metadata = {"deep": json.dumps({**made, "run": uuid4().hex}, sort_keys=True)}
    schemas = {kind: schema.with_metadata(metadata) for kind, schema in schemas.items()}
    paths = output_paths(out)
    places = {kind: path for kind, path in paths.items() if kind in schemas}
    # Soft votes of an earlier run would not belong to these votes.
    gone = [path for kind, path in paths.items() if kind not in schemas]
    with atomic_files(places, gone) as partial, ExitStack() as stack:
        writers = {kind: stack.enter_context(pq.ParquetWriter(partial[kind], schemas[kind])) for kind in schemas}
        # All files take a chunk before the next is read, so that rows are held once.
        for rows in chunks(judged):
            for kind, writer in writers.items():
                if kind == "reasons":
                    table = pa.Table.from_pylist(list(_reason_records(rows)), schema=schemas[kind])
                elif kind == "judgments":
                    table = pa.Table.from_pylist(list(_records(rows, claim_first, free)), schema=schemas[kind])
                else:
                    columns = voters if kind == "votes" else soft
                    table = _answer_table(rows, schemas[kind], columns, graders, soft=kind == "soft")
                writer.write_table(table)


def _answer_table(
    rows: Sequence[Row], schema: "pa.Schema", voters: Sequence[str], graders: Mapping[str, Scale], *, soft: bool
) -> "pa.Table":
    """Return the table of votes, or of `soft` votes."""
    import pyarrow as pa

    columns: dict[str, list[object]] = {
        "dataset": [example.dataset for example, _ in rows],
        "item_id": [example.example_id for example, _ in rows],
        "label": [example.label for example, _ in rows],
        "document_id": [example.document_id for example, _ in rows],
    }
    for voter in voters:
        scale, judgments = graders.get(voter), [row.get(voter) for _, row in rows]
        scores = [one.score if one and (soft or scale) else _vote(one) for one in judgments]
        words = () if scale is None else scale.words
        columns[voter] = [words[int(n)] if words and n is not None else n for n in scores]
    return pa.Table.from_arrays([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def _reason_records(rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    """Yield a record for each missing vote."""
    for example, judgments in rows:
        where = {"dataset": example.dataset, "item_id": example.example_id}
        for voter, judgment in judgments.items():
            if judgment.reason is not None:
                yield {**where, "voter": voter, "reason": judgment.reason}


def _records(rows: Sequence[Row], claim_first: Collection[str], free: Collection[str]) -> Iterator[dict[str, object]]:
    """Yield a record for each judgment."""
    for example, judgments in rows:
        places = PassageFinder(example)
        for voter, judgment in judgments.items():
            # Those from a cache and those of thinking are among them.
            tokens = [judgment.tokens[kind] for kind in ("input", "output") if kind in judgment.tokens]
            yield {
                "dataset": example.dataset,
                "item_id": example.example_id,
                "voter": voter,
                "rationale": _storable(judgment.rationale),
                "passages": [
                    {name: _storable(value) for name, value in asdict(passage).items()}
                    for passage in locate_evidence(judgment, places, claim_first=voter in claim_first)
                ],
                "samples": judgment.samples,
                "cost": cost_of(judgment, free=voter in free),
                "seconds": judgment.seconds,
                "tokens": sum(tokens) if tokens else None,
                "repaired": judgment.repaired,
            }


def _storable(value: object) -> object:
    """Return text with "?" in place of lone surrogates, which no file holds, so that places stay; all else as it is."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def cost_of(judgment: Judgment, *, free: bool) -> float | None:
    """Return the dollars of a judgment: 0 of a judge that costs nothing, or where no answer came; None of no price."""
    unanswered = judgment.reason == "failed" and judgment.cost is None and not judgment.tokens
    return 0.0 if free or unanswered else judgment.cost


def _answer_text(judgment: Judgment) -> str:
    """Return an answer as text, empty where there is none; three digits tell grades apart, and keep few of them."""
    number = judgment.vote if judgment.score is None else judgment.score
    return f"{number:.3g}" if judgment.reason is None else ""


def _vote(judgment: Judgment | None) -> int | None:
    return None if judgment is None or judgment.vote == ABSTAIN else judgment.vote


def run_programs(
    programs: Callable[[], Iterable[ProgramEntry]],
    options: AskOptions,
    *,
    endpoint: str | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[RunOutcome, dict[ProgramId, Any]]:
    """Ask the questions of programs that the ledger lacks, and return the value of each program.

    A wave asks all questions that can be asked now, side by side; the answers lead to the next wave. Questions that
    are the same, of whatever program, are one request. Nothing is held but the ledger, so that a run that was
    stopped, killed or out of budget goes on where it was when it is called again.

    Parameters
    ----------
    programs : callable
        Returns, fresh and the same ones every time, the identity of each program, the LLM that it asks, and the
        program.
    options : AskOptions
        The ledger, the endpoint, and the limits of the run.
    endpoint : str, optional
        The endpoint's name in the ledger; its address where none is given.

    Returns
    -------
    outcome : RunOutcome
        The counts of the run; `stopped` says why it ended before its end.
    values : dict
        The value of each program by its identity; empty where the run was stopped.

    Raises
    ------
    Exception
        Whatever a program raises.
    """
    name = options.public_url if endpoint is None else endpoint
    outcome = ask_requests(options, endpoint=name, programs=programs, progress=progress)
    if outcome.stopped is not None:
        return outcome, {}
    values = {}
    # Read again from the ledger: a run holds no answers, so that it can be of any size.
    with llm.History(options.ledger) as history:
        for identity, value in Replay(programs, name, history).values():
            if isinstance(value, Exception):
                raise value
            values[identity] = value
    return outcome, values


# What is called with each example and its judgments by voter.
OnJudged = Callable[[Example, Mapping[str, Judgment]], object]


def write_votes(
    plan: Plan,
    options: AskOptions | None,
    out: Path,
    tally: "Tally",
    progress: ProgressCallback | None = None,
    on_judged: OnJudged | None = None,
    stopped: str | None = None,
) -> Path:
    """Write the votes of a plan: those that were asked for from the ledger alone, the others as they are made.

    Counts those of staged judges and of judges that need no LLM. `on_judged` is called with each example as it is
    written. What a run that was `stopped` by its ``budget``, ``interrupted``, or that only reads the ``ledger``, has
    not asked is ``not_asked``. Returns where they are: votes of a stopped run lie beside a table that is whole.
    """
    # First of all: votes on other texts than those that were judged would be wrong in silence.
    plan.check_unchanged()
    out = out if stopped == FROM_LEDGER else votes_path(out, stopped)
    run_values: dict[str, object] = {} if options is None else {"max_failure_rate": options.max_failure_rate}
    run_values |= {} if stopped is None else {"stopped": stopped}
    # The voters that may give more than a vote beside it.
    soft = [
        *(c.name for judge, c in plan.prompts if judge.soft or judge.samples > 1 or judge.prompt.kind == "score"),
        *(name for name in plan.functions if name not in plan.graders),
        *(column.name for column in plan.offline),
    ]
    public_url = options.public_url if options is not None and plan.asks else None
    write_judgments(
        judged_rows(plan, options, tally, progress, stopped, on_judged),
        plan.voters,
        out,
        {**plan.metadata(public_url), **run_values, "examples": datasets.origin_record(plan.examples, out)},
        soft,
        plan.graders,
        # A column of nothing but missing ids would only take room.
        documents=any(example.document_id is not None for example in plan.examples),
        claim_first=plan.claim_first,
        free={column.name for column in plan.offline},
    )
    return out


def judged_rows(
    plan: Plan,
    options: AskOptions | None,
    tally: "Tally",
    progress: ProgressCallback | None = None,
    stopped: str | None = None,
    on_judged: OnJudged | None = None,
) -> Iterator[Row]:
    """Yield every example of a plan with its judgments; counts those that no answer in the ledger is alone."""
    new_voters = {column.name for column in (plan.columns if stopped == FROM_LEDGER else (*plan.staged, *plan.offline))}
    state = AskProgress(tally, 0, plan.n_examples)
    with ExitStack() as stack:
        history = None
        if options is not None:
            history = history_of(options.ledger, plan) or llm.History(options.ledger)  # which says that there is none
            stack.enter_context(history)
        for examples in chunks(plan.chosen):
            for example, judgments in zip(
                examples, judgments_of_plan(plan, examples, history, stopped=stopped), strict=True
            ):
                for voter, judgment in judgments.items():
                    counts = tally.by_dataset.setdefault((voter, str(example.dataset)), Counter())
                    counts[judgment.reason or "votes"] += 1
                    tally.answers[voter][_answer_text(judgment)] += 1
                    if judgment.reason in UNASKED_REASONS:
                        tally.by_voter.setdefault(voter, Counter())[judgment.reason] += 1
                    elif voter in new_voters:
                        tally.judge(voter, judgment)
                state.judged += 1
                if progress is not None and plan.offline:
                    progress(state)
                if on_judged is not None:
                    on_judged(example, judgments)
                yield example, judgments
    asking_voters = {column.name for column in plan.columns} - {column.name for column in plan.offline}
    # To find nothing is a mistake in the command; the votes would all be missing.
    if stopped == FROM_LEDGER and not any(tally.by_voter[voter]["done"] for voter in asking_voters):
        raise InputError(
            "`from_ledger` must hold answers to these questions. Got none. Give the examples, judges, --llm and "
            "--base-url of the run that asked them."
        )


ITEM_COLUMNS = ["dataset", "item_id"]
# Items that are named of each change. Five show what kind of change it is. Chosen; no measurement is known.
MAX_CHANGES_SHOWN = 5


@dataclass(frozen=True)
class ChangedVotes:
    """The votes that a reading changed.

    Parameters
    ----------
    changes : mapping of (str, str) to list of str
        By voter and change, such as ``none -> 1``: the items.
    n_items : int
        Items of the table that was written anew, changed or not.
    """

    changes: Mapping[tuple[str, str], list[str]]
    n_items: int

    def results(self) -> dict[str, object]:
        """Return the changes as values of JSON."""
        rows = [{"voter": voter, "change": change, "items": items} for (voter, change), items in self.changes.items()]
        return {"items": self.n_items, "changed": sum(map(len, self.changes.values())), "changes": rows}

    def lines(self) -> Iterator[str]:
        """Yield a line of how many votes changed, and one a voter and change."""
        n_changed = Counter({voter: 0 for voter, _ in self.changes})
        for (voter, _), items in self.changes.items():
            n_changed[voter] += len(items)
        yield f"{n_changed.total():,} votes of {self.n_items:,} items changed; nothing was asked"
        for (voter, change), items in sorted(self.changes.items()):
            more = f", and {len(items) - MAX_CHANGES_SHOWN:,} more" if len(items) > MAX_CHANGES_SHOWN else ""
            yield f"  {voter}: {len(items):,} {change} ({', '.join(items[:MAX_CHANGES_SHOWN])}{more})"


def reread_votes(plan: Plan, options: AskOptions | None, out: Path) -> ChangedVotes:
    """Read the replies of a ledger again, write the votes, and return which differ from those that were there.

    Raises
    ------
    InputError
        No LLM is asked, or there is no ledger or no table of votes of an earlier run.
    """
    import pandas as pd

    if options is None:
        raise InputError("`reread` must be given with judges that ask an LLM. Got none of them. Leave it out.")
    if not out.is_file():
        raise InputError(f"`out` must be the votes of an earlier run with `reread`. Got no file at {str(out)!r}.")
    # Read before they are written over.
    before = pd.read_parquet(out).set_index(ITEM_COLUMNS)
    write_votes(plan, options, out, llm.Tally(0))
    after = pd.read_parquet(out).set_index(ITEM_COLUMNS)
    changes: dict[tuple[str, str], list[str]] = {}
    for voter in plan.voters:
        # A voter that is new in this run had no votes.
        was = before[voter].reindex(after.index) if voter in before else pd.Series(index=after.index, dtype="float64")
        for item, old, new in zip(after.index, was, after[voter], strict=True):
            change = f"{_vote_word(old)} -> {_vote_word(new)}"
            if _vote_word(old) != _vote_word(new):
                changes.setdefault((voter, change), []).append("/".join(map(str, item)))
    return ChangedVotes(changes, len(after))


def _vote_word(value: float) -> str:
    return "none" if value != value else str(int(value))  # no vote is NaN in a column of floats

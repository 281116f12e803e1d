"""The votes of a plan, written to files or read again from an old ledger; programs asked in waves, and their values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep import llm
from deep.asking._options import AskOptions, AskProgress, ProgressCallback
from deep.asking._plan import Plan, judgments_of_plan
from deep.asking._replay import Entry, ProgramId, Replay
from deep.asking._run import FROM_LEDGER, RunOutcome, ask_requests, history_of
from deep.asking._vote_files import Outputs, Row, chunks, place_of_votes
from deep.datasets import origin_record
from deep.exceptions import InputError
from deep.records import UNASKED_REASONS, Example, Judgment

if TYPE_CHECKING:
    from deep.llm import Tally


def run_programs(
    programs: Callable[[], Iterable[Entry]],
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
    with llm.History(options.ledger) as history:
        for identity, value in Replay(programs, name, history).values():
            if isinstance(value, Exception):
                raise value
            values[identity] = value
    return outcome, values


OnJudged = Callable[[Example, Mapping[str, Judgment]], object]
"""What is called with each example and its judgments by voter."""


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
    plan.check_unchanged()
    documents = any(example.document_id is not None for example in plan.examples)
    out = out if stopped == FROM_LEDGER else place_of_votes(out, stopped)
    asked: dict[str, object] = {} if options is None else {"max_failure_rate": options.max_failure_rate}
    asked |= {} if stopped is None else {"stopped": stopped}
    outputs = Outputs(
        out,
        plan.voters,
        soft=plan.soft_voters,
        metadata={
            **plan.metadata(options.public_url if options is not None and plan.asks else None),
            **asked,
            "examples": origin_record(plan.examples, out),
        },
        documents=documents,
        claim_first=plan.claim_first,
        free=[column.name for column in plan.offline],
    )
    outputs.write(_told(judged_rows(plan, options, tally, progress, stopped), on_judged))
    return out


def _told(rows: Iterator[Row], on_judged: OnJudged | None) -> Iterator[Row]:
    """Yield rows, each once it has been told of."""
    for row in rows:
        if on_judged is not None:
            on_judged(row.example, row.judgments)
        yield row


def write_judged(
    judged: Iterable[tuple[Example, Mapping[str, Judgment]]],
    voters: Sequence[str],
    out: Path,
    made: Mapping[str, object],
) -> None:
    """Write votes that were given elsewhere, and their reasons and rationales beside them, as ``deep votes`` does.

    Parameters
    ----------
    judged : iterable of (Example, mapping of voter to Judgment)
    voters : sequence of str
        The columns, in order; an example has no judgment of one that was not there to judge it.
    out : Path
        The Parquet file of votes.
    made : mapping
        How they came to be, for the account in the files.
    """
    outputs = Outputs(out, voters, soft=(), metadata=made, documents=True, claim_first=(), free=())
    outputs.write(Row(example, judgments) for example, judgments in judged)


def judged_rows(
    plan: Plan,
    options: AskOptions | None,
    tally: "Tally",
    progress: ProgressCallback | None = None,
    stopped: str | None = None,
) -> Iterator[Row]:
    """Yield every example of a plan with its judgments; counts those that no answer in the ledger is alone."""
    counted = {column.name for column in (plan.columns if stopped == FROM_LEDGER else (*plan.staged, *plan.offline))}
    state = AskProgress(tally, 0, plan.n_examples)
    with ExitStack() as stack:
        history = None
        if options is not None:
            history = history_of(options.ledger, plan) or llm.History(options.ledger)  # which says that there is none
            stack.enter_context(history)
        for examples in chunks(plan.examples):
            for example, judgments in zip(
                examples, judgments_of_plan(plan, examples, history, stopped=stopped), strict=True
            ):
                for voter, judgment in judgments.items():
                    counts = tally.by_dataset.setdefault((voter, str(example.dataset)), Counter())
                    counts[judgment.reason or "votes"] += 1
                    if judgment.reason in UNASKED_REASONS:
                        tally.by_voter.setdefault(voter, Counter())[judgment.reason] += 1
                    elif voter in counted:
                        tally.judge(voter, judgment)
                state.judged += 1
                if progress is not None and plan.offline:
                    progress(state)
                yield Row(example, judgments)
    asked = {column.name for column in plan.columns} - {column.name for column in plan.offline}
    if stopped == FROM_LEDGER and not any(tally.by_voter[voter]["done"] for voter in asked):
        raise InputError(
            "`from_ledger` must hold answers to these questions. Got none. Give the examples, judges, --llm and "
            "--base-url of the run that asked them."
        )


KEYS = ["dataset", "item_id"]
SHOWN = 5
"""Items that are named of each change."""


@dataclass(frozen=True)
class Reread:
    """The votes that a reading changed.

    Parameters
    ----------
    changes : mapping of (str, str) to list of str
        By voter and change, such as ``none -> 1``: the items.
    n_items : int
    """

    changes: Mapping[tuple[str, str], list[str]]
    n_items: int

    def results(self) -> dict[str, object]:
        """Return the changes as values of JSON."""
        listed = [{"voter": voter, "change": change, "items": items} for (voter, change), items in self.changes.items()]
        return {"items": self.n_items, "changed": sum(map(len, self.changes.values())), "changes": listed}

    def told(self) -> tuple[dict[str, object], Iterator[str]]:
        """Return the changes for a program and for a person."""
        return self.results(), self.lines()

    def lines(self) -> Iterator[str]:
        """Yield a line of how many votes changed, and one a voter and change."""
        changed = Counter({voter: 0 for voter, _ in self.changes})
        for (voter, _), items in self.changes.items():
            changed[voter] += len(items)
        yield f"{changed.total():,} votes of {self.n_items:,} items changed; nothing was asked"
        for (voter, change), items in sorted(self.changes.items()):
            more = f", and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
            yield f"  {voter}: {len(items):,} {change} ({', '.join(items[:SHOWN])}{more})"


def reread(plan: Plan, options: AskOptions | None, out: Path) -> Reread:
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
    before = pd.read_parquet(out).set_index(KEYS)
    write_votes(plan, options, out, llm.Tally(0))
    after = pd.read_parquet(out).set_index(KEYS)
    changes: dict[tuple[str, str], list[str]] = {}
    for voter in plan.voters:
        was = before[voter].reindex(after.index) if voter in before else pd.Series(index=after.index, dtype="float64")
        for item, old, new in zip(after.index, was, after[voter], strict=True):
            said = f"{_vote(old)} -> {_vote(new)}"
            if _vote(old) != _vote(new):
                changes.setdefault((voter, said), []).append("/".join(map(str, item)))
    return Reread(changes, len(after))


def _vote(value: object) -> str:
    import pandas as pd

    return "none" if pd.isna(value) else str(int(value))  # type: ignore[call-overload]

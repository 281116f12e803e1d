"""The judgments of a plan, read: those that were asked for from the ledger alone, the others made here and now."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from deep.asking._options import AskOptions, AskProgress, ProgressCallback
from deep.asking._plan import Plan, PlannedVoter
from deep.asking._replay import Entry, ProgramId, Replay
from deep.asking._run import RunOutcome, ask_requests
from deep.asking._vote_files import Outputs, Row, chunks
from deep.datasets import origin_record
from deep.judge import Question, run_program
from deep.llm import History, Tally
from deep.records import Example, Judgment

if TYPE_CHECKING:
    from deep.llm import Request


def read_judgments(
    plan: Plan, examples: Sequence[Example], history: "History | None", *, tell: bool = True
) -> list[dict[str, Judgment]]:
    """Return the judgments of each example by voter, in the order of the plan.

    Several samples are pooled, a request without an answer is ``failed``, and a judge that breaks is ``unparsable``
    and, with `tell`, named on standard error.

    Parameters
    ----------
    plan : Plan
    examples : sequence of Example
        All or some of the plan's; each with an id of its own in its dataset.
    history : History or None
        The ledger; None where no LLM was asked.
    """
    asked = [column for column in plan.columns if column.judge.needs_llm]
    rows: dict[tuple[str, str], dict[str, Judgment]] = {(str(e.dataset), e.example_id): {} for e in examples}
    replay = Replay(lambda: plan.programs(examples, asked, tell=tell), plan.endpoint, history)
    for identity, judgment in replay.values() if asked else ():
        rows[identity.dataset, identity.item][identity.voter] = judgment
    return [row | made for row, made in zip(rows.values(), judge_offline(plan.offline, examples), strict=True)]


def read_samples(plan: Plan, examples: Sequence[Example], history: "History") -> "Iterator[tuple[Request, Judgment]]":
    """Yield every request of a plan's prompts about some examples with the judgment of its reply alone."""
    requests = list(plan.requests(examples))
    answers = history.answers([request.key for request in requests])
    for request in requests:
        answer = answers.get(request.key)
        yield request, request.context.read(None if answer is None else answer.reply)


def judge_offline(columns: Sequence[PlannedVoter], examples: Sequence[Example]) -> Iterator[dict[str, Judgment]]:
    """Yield the judgments of each example by voter, by judges that need no LLM.

    Judges that are quicker on many examples take all at once; the others go together from example to example, so
    that lexical checks share the analysis of a text.
    """
    batches = {c.name: c.judge.label_many(examples) for c in columns if hasattr(c.judge, "label_many")}
    single = {column.name: column.judge for column in columns}
    for i, example in enumerate(examples):
        yield {
            name: batches[name][i] if name in batches else run_program(judge.program(example), _ask_nobody)
            for name, judge in single.items()
        }


def _ask_nobody(question: Question) -> NoReturn:
    raise TypeError(f"A judge that needs no LLM must ask no question. Got {question.step!r}.")


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
    with History(options.ledger) as history:
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
    tally: Tally,
    progress: ProgressCallback | None = None,
    on_judged: OnJudged | None = None,
) -> None:
    """Write the votes of a plan: those that were asked for from the ledger alone, the others as they are made.

    Counts those of staged judges and of judges that need no LLM. `on_judged` is called with each example as it is
    written.
    """
    documents = any(example.document_id is not None for example in plan.examples)
    asked = {} if options is None else {"max_failure_rate": options.max_failure_rate}
    outputs = Outputs(
        out,
        plan.voters,
        soft=plan.soft_voters,
        metadata={
            **plan.metadata(None if options is None else options.public_url),
            **asked,
            "examples": origin_record(plan.examples, out),
        },
        documents=documents,
        claim_first=plan.claim_first,
        free=[column.name for column in plan.offline],
    )
    outputs.write(_told(read_rows(plan, options, tally, progress), on_judged))


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
        The columns, in order; each example has a judgment of each.
    out : Path
        The Parquet file of votes.
    made : mapping
        How they came to be, for the account in the files.
    """
    outputs = Outputs(out, voters, soft=(), metadata=made, documents=True, claim_first=(), free=())
    outputs.write(Row(example, judgments) for example, judgments in judged)


def read_rows(
    plan: Plan, options: AskOptions | None, tally: Tally, progress: ProgressCallback | None = None
) -> Iterator[Row]:
    """Yield every example of a plan with its judgments; counts those that no answer in the ledger is alone."""
    counted = [column.name for column in (*plan.staged, *plan.offline)]
    state = AskProgress(tally, 0, plan.n_examples)
    with ExitStack() as stack:
        history = None if options is None else stack.enter_context(History(options.ledger))
        for examples in chunks(plan.examples):
            for example, judgments in zip(examples, read_judgments(plan, examples, history), strict=True):
                for voter in counted:
                    tally.judge(voter, judgments[voter])
                state.judged += 1
                if progress is not None and plan.offline:
                    progress(state)
                yield Row(example, judgments)

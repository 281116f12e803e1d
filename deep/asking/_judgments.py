"""The judgments of a plan, read: those that were asked for from the ledger alone, the others made here and now."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from deep.asking._plan import Plan, PlannedVoter
from deep.asking._replay import Replay
from deep.judge import Question, run_program
from deep.records import Example, Judgment

if TYPE_CHECKING:
    from deep.llm import History, Request


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

"""Score text: P(consistent) from the judgments of the judges that a model names."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from deep._util.entry_points import WRITER, load_part
from deep._util.files import whole_file
from deep.asking._options import NO_SOURCE, NOT_ASKED
from deep.asking._plan import Plan, PlannedVoter, broken
from deep.asking._replay import ProgramId, Replay
from deep.asking._vote_files import chunks
from deep.judges import Question, run_program
from deep.model import Model, ScoreOptions, writer
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    import pyarrow as pa

    from deep.llm import History, Request


def judgments_of_plan(
    plan: Plan, examples: Sequence[Example], history: "History | None", *, tell: bool = True, stopped: str | None = None
) -> list[dict[str, Judgment]]:
    """Return the judgments of each example by voter, in the order of the plan.

    Several samples are pooled, a request without an answer is ``failed``, a judge that has a question which was never
    asked is ``not_asked``, and one that breaks is ``unparsable`` and, with `tell`, named on standard error.

    Parameters
    ----------
    plan : Plan
    examples : sequence of Example
        All or some of the plan's; each with an id of its own in its dataset.
    history : History or None
        The ledger; None where no LLM was asked and no function called.
    tell : bool, default=True
    stopped : str, optional
        Why the run ended: where it was ``interrupted``, no judge judges that is not asked.
    """
    asked = [column for column in plan.columns if column.judge.needs_llm or column.caller]
    rows: dict[tuple[str, str], dict[str, Judgment]] = {(str(e.dataset), e.example_id): {} for e in examples}
    if asked:
        replay = Replay(lambda: plan.programs(examples, asked, tell=tell), plan.endpoint, history)
        for identity, judgment in replay.values():
            known = identity not in replay.not_asked
            rows[identity.dataset, identity.item][identity.voter] = judgment if known else NOT_ASKED
    # Whoever presses Ctrl-C waits for no encoder.
    none = [dict.fromkeys((column.name for column in plan.offline), NOT_ASKED)] * len(examples)
    offline = none if stopped == "interrupted" else judge_offline(plan.offline, examples, tell=tell)
    judgments = [asked | read for asked, read in zip(rows.values(), offline, strict=True)]
    nothing = dict.fromkeys(plan.voters, NO_SOURCE)
    return [found if example.has_texts else nothing for example, found in zip(examples, judgments, strict=True)]


def read_samples(plan: Plan, examples: Sequence[Example], history: "History") -> "Iterator[tuple[Request, Judgment]]":
    """Yield every request of a plan's prompts about some examples with the judgment of its reply alone."""
    requests = list(plan.requests(examples))
    answers = history.answers([request.key for request in requests])
    for request in requests:
        answer = answers.get(request.key)
        yield request, request.context.read(None if answer is None else answer.reply)


def judge_offline(
    columns: Sequence[PlannedVoter], examples: Sequence[Example], *, tell: bool = True
) -> Iterator[dict[str, Judgment]]:
    """Yield the judgments of each example by voter, by judges that need no LLM; one that raises has failed there.

    Judges that are quicker on many examples take all at once; the others go together from example to example, so
    that lexical checks share the analysis of a text.
    """
    complete = [example for example in examples if example.has_texts]
    many = [column for column in columns if complete and hasattr(column.judge, "label_many")]
    batches = {column.name: iter(cast("Any", column.judge).label_many(complete)) for column in many}
    for example in examples:
        here = batches if example.has_texts else {}
        yield {c.name: next(here[c.name]) if c.name in here else _judged(c, example, tell=tell) for c in columns}


def _judged(column: PlannedVoter, example: Example, *, tell: bool) -> Judgment:
    if not example.has_texts:
        return NO_SOURCE
    try:
        return run_program(column.judge.program(example), _ask_nobody)
    except Exception as error:
        return broken(ProgramId(column.name, str(example.dataset), example.example_id), "failed", error, tell=tell)


def _ask_nobody(question: Question) -> NoReturn:
    raise TypeError(f"A judge that needs no LLM must ask no question. Got {question.step!r}.")


MOST_PATTERNS = 20_000
"""Patterns of votes whose scores are kept: some 10 MB."""


@dataclass(frozen=True)
class Scored:
    """One example with its judgments and the columns of its scores.

    Parameters
    ----------
    example : Example
    judgments : mapping of str to Judgment
        By the judge's own name.
    columns : dict
        A row of the scores.
    not_asked : sequence of str, optional
        Judges that were not needed, where they are asked one by one.
    """

    example: Example
    judgments: Mapping[str, Judgment]
    columns: dict[str, Any]
    not_asked: Sequence[str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        judges = [
            {
                "judge": name,
                "vote": None if judgment.vote == ABSTAIN else judgment.vote,
                "reason": judgment.reason,
                "rationale": judgment.rationale,
                "evidence": list(judgment.evidence),
            }
            for name, judgment in self.judgments.items()
        ]
        spared = {} if self.not_asked is None else {"not_asked": list(self.not_asked)}
        return {**self.columns, "judges": judges, **spared}


@dataclass(frozen=True)
class PlanScorer:
    """Scores examples by a model and the judgments of its own judges.

    Parameters
    ----------
    model : Model
    plan : Plan
        Of the model's judges, in the order of its voters.
    options : ScoreOptions
    """

    model: Model
    plan: Plan
    options: ScoreOptions

    def __call__(self, examples: Sequence[Example], history: "History | None", *, tell: bool = True) -> list[Scored]:
        """Return scored examples, whether they are the plan's own or others that its judges can read.

        Parameters
        ----------
        examples : sequence of Example
            Each with an id of its own in its dataset.
        history : History or None
            The ledger; None where no LLM is asked.
        tell : bool, default=True
            Name each program that breaks on standard error.
        """
        voters = self.plan.voters
        scored = []
        for example, row in zip(examples, judgments_of_plan(self.plan, examples, history, tell=tell), strict=True):
            judgments = {name: row[name] for name in voters}
            item = {"dataset": str(example.dataset), "item_id": example.example_id, "label": example.label}
            scores = self._of_votes(tuple(row[name].vote for name in voters))
            scored.append(Scored(example, judgments, item | scores))
        return scored

    @cached_property
    def _of_votes(self) -> Callable[[tuple[int, ...]], dict[str, Any]]:
        """The scores of a pattern of votes; patterns come again, and to score one takes longer than to judge a text."""

        @lru_cache(MOST_PATTERNS)
        def scores(votes: tuple[int, ...]) -> dict[str, Any]:
            evidence = self.model.of_patterns(np.array([votes], dtype=np.int8))
            return self.model.scores_at(self.model.contexts, self.options.prior, evidence).records()[0]

        return scores


def score_examples(model: Model, plan: Plan, ledger: str | None, options: ScoreOptions) -> Iterator[list[Scored]]:
    """Yield scored examples, a chunk at a time; the answers of LLMs are read from the ledger."""
    score = PlanScorer(model, plan, options)
    with ExitStack() as stack:
        history = None
        if ledger is not None:
            from deep.llm import History

            history = stack.enter_context(History(ledger))
        for examples in chunks(plan.examples):
            yield score(examples, history)


def prior_of_texts(model: Model, options: ScoreOptions) -> dict[str, object]:
    """Return the share of consistent items at which texts are scored, as JSON values, and `of` what it is the share.

    Texts come one by one, so that nothing can be learned from them of the dataset that they are of.
    """
    if options.prior is not None:
        return {"estimate": options.prior, "of": "the texts, as given"}
    whose = "the mean of the training datasets" if model.target is None else f"the dataset {model.target}"
    return {**asdict(model.prior), "of": f"{whose}, carried over and not measured on these texts"}


def write_scored(scored: Iterator[list[Scored]], out: Path, schema: "pa.Schema", to: str | None = None) -> int:
    """Write scored examples: rows of scores, or with ending .jsonl also each judgment; `to` Inspect, its records."""
    import pyarrow as pa

    n = 0
    with whole_file(out) as scratch, ExitStack() as stack:
        lines = out.suffix.lower() == ".jsonl"
        if to is not None:
            records = stack.enter_context(load_part(to, WRITER)(scratch))
        elif lines:
            file = stack.enter_context(scratch.open("w", encoding="utf-8"))
        else:
            table = stack.enter_context(writer(scratch, out.suffix.lower(), schema))
        for batch in scored:
            n += len(batch)
            if to is not None:
                for row in batch:
                    records.write_row(row.as_dict())
            elif lines:
                file.writelines(json.dumps(row.as_dict(), ensure_ascii=False) + "\n" for row in batch)
            else:
                table.write_table(pa.Table.from_pylist([row.columns for row in batch], schema=schema))
        stack.close()  # before the file takes its place
    return n

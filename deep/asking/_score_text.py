"""Score text: P(consistent) from the judgments of the judges that a model names."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from deep import llm  # its names are loaded as they are used: most of it is SQLAlchemy's
from deep._util.entry_points import WRITER_GROUP, load_part
from deep._util.files import atomic_file, to_json
from deep.asking._ask import InMemoryExamples, temporary_ledger
from deep.asking._options import AskOptions
from deep.asking._plan import Plan, judgments_of_plan
from deep.asking._registry import Finder
from deep.asking._replay import chunks
from deep.asking._run import run_plan
from deep.exceptions import InputError, StoppedError
from deep.model import Model, ScoreOptions, load, open_table_writer
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    import pyarrow as pa

    from deep.llm import History


# Patterns of votes whose scores are kept: some 10 MB.
MAX_CACHED_PATTERNS = 20_000


@dataclass(frozen=True)
class Scored:
    """One example with its judgments and the columns of its scores.

    Parameters
    ----------
    example : Example
        Its claim is what the scores are of.
    judgments : mapping of str to Judgment
        By the judge's own name.
    columns : dict
        A row of the scores.
    not_asked : sequence of str, optional
        Judges that were not needed, where they are asked one by one.
    graders : sequence of str, default=()
        Judges whose score counts, and not the vote.
    """

    example: Example
    judgments: Mapping[str, Judgment]
    columns: dict[str, Any]
    not_asked: Sequence[str] | None = None
    graders: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        judges = [
            {
                "judge": name,
                "vote": None if judgment.vote == ABSTAIN else judgment.vote,
                "score": judgment.score if name in self.graders else None,
                "reason": judgment.reason,
                "rationale": judgment.rationale,
                "evidence": list(judgment.evidence),
            }
            for name, judgment in self.judgments.items()
        ]
        extra = {} if self.not_asked is None else {"not_asked": list(self.not_asked)}
        return {**self.columns, "judges": judges, **extra}


@dataclass(eq=False)
class PlanScorer:
    """Scores examples by a model and the judgments of its own judges.

    Parameters
    ----------
    model : Model
        Gives the scores of each pattern of votes.
    plan : Plan
        Of the model's judges, in the order of its voters.
    options : ScoreOptions
        Only its `prior` counts: the share of consistent items at which examples are scored.
    """

    model: Model
    plan: Plan
    options: ScoreOptions

    def read(self, examples: Sequence[Example], history: "History | None" = None, *, tell: bool = True) -> list[Scored]:
        """Return examples scored by their judgments, those of LLMs as a ledger has them; nothing is asked.

        Parameters
        ----------
        examples : sequence of Example
            The plan's own or others that its judges can read, each with an id of its own in its dataset.
        history : History, optional
            The ledger; needed where a judge asks an LLM.
        tell : bool, default=True
            Name each program that breaks on standard error.
        """
        voters = self.plan.voters
        pairs = zip(voters, self.model.voters, strict=True)
        graders = [name for name, voter in pairs if voter.name in self.model.score_names]
        result = []
        for example, row in zip(examples, judgments_of_plan(self.plan, examples, history, tell=tell), strict=True):
            judgments = {name: row[name] for name in voters}
            item = {"dataset": str(example.dataset), "item_id": example.example_id, "label": example.label}
            scores = self._of_answers(tuple(row[v].score if v in graders else row[v].vote for v in voters))
            result.append(Scored(example, judgments, item | scores, graders=graders))
        return result

    @cached_property
    def _of_answers(self) -> Callable[[tuple[float | None, ...]], dict[str, Any]]:
        """The scores of a pattern of answers; patterns come again, and scoring one takes longer than judging a text."""
        scales = [*self.model.scales.values()]

        @lru_cache(MAX_CACHED_PATTERNS)
        def scores(answers: tuple[float | None, ...]) -> dict[str, Any]:
            if scales:
                numbers = np.array(answers, dtype=np.float64)  # None is NaN
                pattern = np.array([[scale.places(number) for scale, number in zip(scales, numbers, strict=True)]])
            else:
                pattern = np.array([answers], dtype=np.int8)
            evidence = self.model.of_patterns(pattern)
            return self.model.scores_at(self.model.contexts, self.options.prior, evidence).records()[0]

        return scores


def score_examples(model: Model, plan: Plan, ledger: str | None, options: ScoreOptions) -> Iterator[list[Scored]]:
    """Yield scored examples, a chunk at a time; the answers of LLMs are read from the ledger."""
    scorer = PlanScorer(model, plan, options)
    with nullcontext() if ledger is None else llm.History(ledger) as history:
        for examples in chunks(plan.examples):
            yield scorer.read(examples, history)


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
    with atomic_file(out) as scratch, ExitStack() as stack:
        lines = out.suffix.lower() == ".jsonl"
        if to is not None:
            records = stack.enter_context(load_part(to, WRITER_GROUP)(scratch))
        elif lines:
            file = stack.enter_context(scratch.open("w", encoding="utf-8"))
        else:
            table = stack.enter_context(open_table_writer(scratch, out.suffix.lower(), schema))
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


# The dataset of pairs of texts that come one by one.
TEXTS = "texts"

# One of each for all scorers that are made without their own.
DEFAULT_FINDER, DEFAULT_OPTIONS = Finder(), ScoreOptions()


class TextScorer(PlanScorer):
    """Scores texts by a model whose judges are found once, from one thread or many: for servers and other tools.

    Where judges ask an LLM, pairs that come while others are asked about go together in the next run against the
    ledger; the same pair is never paid for twice. A pair is known by its text alone.

    Parameters
    ----------
    model : Model, str or Path
        A model, or its file.
    ask : AskOptions, optional
        The ledger and the limits; needed where a judge asks an LLM.
    finder : Finder, optional
        Where the model's judges are looked for.
    options : ScoreOptions, optional
        The prior, and whether judges of another version may stand in.
    endpoint : str, optional
        The endpoint's name in the ledger, if its address may change.
    dataset : str, default='texts'
        The dataset of the pairs in the ledger; it is no part of what is asked.

    Attributes
    ----------
    plan : Plan
        The model's judges, without examples.
    asks : bool
        Whether a judge of the model asks an LLM.
    ask : AskOptions or None
        The ledger and the limits: those given; with functions and without any, a ledger that goes with this object.

    Raises
    ------
    InputError
        The model cannot be read, or has a voter that is no judge; or `ask` is missing.

    Examples
    --------
    >>> from deep import Example, fit
    >>> from deep.asking import TextScorer, ask
    >>> source = "Rain fell on Monday. The river rose by 14 centimetres."
    >>> votes = ask([Example(source, f"It rose by {n} centimetres.", str(n)) for n in range(10, 20)], ["numbers"])
    >>> scored = TextScorer(fit(votes)).score(source, "The river rose by 41 centimetres.")
    >>> scored.columns["decision"], [judgment.vote for judgment in scored.judgments.values()]
    (0, [0])
    """

    def __init__(
        self,
        model: Model | str | Path,
        ask: AskOptions | None = None,
        *,
        finder: Finder = DEFAULT_FINDER,
        options: ScoreOptions = DEFAULT_OPTIONS,
        endpoint: str | None = None,
        dataset: str = TEXTS,
    ) -> None:
        model = model if isinstance(model, Model) else load(model)
        self.ask, self._dataset = ask, dataset
        name = endpoint or ("" if ask is None else ask.public_url)
        plan = finder.plan(model, InMemoryExamples(()), lambda: name, None if ask is None else ask.workers)
        super().__init__(model, plan, options)
        self.asks = self.plan.asks
        # Asked once, not for each text.
        self._keeps_answers = self.plan.keeps_answers
        if self.asks and ask is None:
            raise InputError(
                "`ask` must be given with a model whose judges ask an LLM: the ledger and its limits. Got none."
            )
        if self.plan.functions and ask is None:  # their answers are kept as long as this object is
            stack = ExitStack()
            self.ask = AskOptions(ledger=temporary_ledger(stack))
            finalize(self, stack.close)
        self._futures: dict[str, tuple[Example, Future[Scored]]] = {}
        self._queue, self._turn = Lock(), Lock()

    @cached_property
    def threshold(self) -> float:
        """The P from which on a claim is called consistent."""
        return self.model.threshold(self.options.prior)

    @cached_property
    def digest(self) -> str:
        """Eight hex digits of the model's content, to tell its scores from another's."""
        return hashlib.sha256(to_json(self.model.document()).encode()).hexdigest()[:8]

    def score(self, source: str, claim: str, question: str | None = None) -> Scored:
        """Return one claim's judgments and scores; as `score_all`."""
        return self.score_all([(source, claim, question)])[0]

    def score_all(self, pairs: Iterable[tuple[str, str] | tuple[str, str, str | None]]) -> list[Scored]:
        """Return the judgments and scores of each (source, claim) or (source, claim, question), in their order.

        Raises
        ------
        InputError
            A text is empty or holds a NUL byte, or the ledger cannot be used.
        StoppedError
            The budget is reached, or the run was interrupted; the answers so far are in the ledger.
        """
        examples = [_example_of_texts(*texts, dataset=self._dataset) for texts in pairs]
        distinct = {example.example_id: example for example in examples}
        if not distinct:
            return []
        result = self._in_turn(distinct) if self._keeps_answers else self._score(list(distinct.values()))
        by_id = {scored.example.example_id: scored for scored in result}
        return [by_id[example.example_id] for example in examples]

    def _in_turn(self, examples: dict[str, Example]) -> list[Scored]:
        """Ask about all that wait, or let the caller whose turn it is do so."""
        with self._queue:
            for name, example in examples.items():
                self._futures.setdefault(name, (example, Future()))
            futures = [self._futures[name][1] for name in examples]
        with self._turn:
            # Whoever has the turn asks about all pairs that have come meanwhile, in one run.
            with self._queue:
                pairs, self._futures = list(self._futures.values()), {}
            try:
                # There may be none: another caller has asked about these pairs with its own.
                result = self._score([example for example, _ in pairs]) if pairs else []
            except BaseException as error:
                for _, future in pairs:
                    future.set_exception(error)
            else:
                for (_, future), scored in zip(pairs, result, strict=True):
                    future.set_result(scored)
        return [future.result() for future in futures]

    def _score(self, examples: Sequence[Example]) -> list[Scored]:
        if not self._keeps_answers:
            with self._turn:  # lexical checks share what they keep of a text
                return self.read(examples)
        assert self.ask is not None  # or `__init__` has raised
        outcome = run_plan(replace(self.plan, examples=InMemoryExamples(examples)), self.ask)
        if outcome.stopped is not None:
            raise StoppedError(outcome.stopped, "The answers so far are in the ledger; ask again to go on.")
        with llm.History(self.ask.ledger) as history:
            return self.read(examples, history)


def _example_of_texts(source: str, claim: str, question: str | None = None, *, dataset: str) -> Example:
    """Return a pair under a name that its texts give it; a blank question is none."""
    query = None if question is None or (isinstance(question, str) and not question.strip()) else question
    for name, text in (("source", source), ("claim", claim), *([] if query is None else [("question", query)])):
        if not isinstance(text, str):
            raise InputError(f"`{name}` must be text. Got a {type(text).__name__}.")
        if not text.strip() or "\0" in text:
            raise InputError(f"`{name}` must be text. Got {'a NUL byte' if text.strip() else 'nothing'}.")
    texts = f"{len(source)}:{source}{claim}"
    texts = texts if query is None else f"?{len(query)}:{query}{texts}"  # which no pair without a question begins with
    digest = hashlib.sha256(texts.encode(errors="surrogatepass"))
    return Example(source, claim, digest.hexdigest()[:32], dataset=dataset, question=query)

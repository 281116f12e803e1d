"""Votes on examples and P of texts, in Python: the same engine, ledger and limits as `deep votes`."""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import NoneType
from typing import TYPE_CHECKING
from weakref import finalize

from deep._util.checks import check_kind, several
from deep._util.files import to_json
from deep._util.frames import Frame
from deep.asking._functions import AnyFunction
from deep.asking._options import AskOptions, ProgressCallback, Sampling, notebook_progress
from deep.asking._plan import Plan, planned_voters
from deep.asking._registry import Finder, find_judges
from deep.asking._run import run_plan
from deep.asking._score_text import PlanScorer, Scored
from deep.asking._vote_files import Row
from deep.asking._write import judged_rows
from deep.datasets import Examples, as_examples
from deep.exceptions import InputError, StoppedError, printable
from deep.judges import Judge
from deep.model import Model, ScoreOptions, check_scores_given, load
from deep.prompt_pool import Chunking, FewShot
from deep.records import Example, VoteMatrix

if TYPE_CHECKING:
    from deep.llm import History

UNNAMED = "examples"
"""The dataset of examples that name none."""


class GivenExamples(Examples):
    """Examples that are in memory."""

    name = UNNAMED

    def __init__(self, examples: Iterable[Example]) -> None:
        self._examples = [e if e.dataset is not None else replace(e, dataset=self.name) for e in examples]

    def __iter__(self) -> Iterator[Example]:
        return iter(self._examples)

    @property
    def origin(self) -> str:
        """Where the examples come from, for an error message."""
        return "`examples`"


def ask(
    examples: Iterable[Example] | Frame | str | Path,
    judges: str | Judge | AnyFunction | Iterable[str | Judge | AnyFunction],
    *,
    llm: str | Sequence[str] = (),
    ledger: str | Path | None = None,
    budget: float | None = None,
    workers: int | None = None,
    base_url: str | None = None,
    endpoint: str | None = None,
    samples: int = 1,
    temperature: float | None = None,
    max_tokens: int | None = None,
    soft: bool = False,
    repair: bool = True,
    constrain: str = "schema",
    few_shot: FewShot | None = None,
    chunk: Chunking | str | None = None,
    options: AskOptions | None = None,
    progress: ProgressCallback | None = None,
) -> VoteMatrix:
    """Return the votes of judges on examples; called again, ask only what the ledger lacks.

    Parameters
    ----------
    examples : iterable of Example, data frame of pandas, Polars or pyarrow, or path
        A frame has the columns of a file (``source``, ``claim``, ``question``); an id comes once in a dataset.
    judges : str, Judge, function, or iterable of these
        Pools (``deep-9``), prompts, ``stepwise``, lexical checks, encoders; functions of (source, claim): `deep.judge`.
    llm : str or sequence of str, optional
        LLMs as the endpoint names them, or by provider (``mistral/...``); every judge that needs one asks each.
    ledger : str or Path, optional
        The file that keeps every answer, so that nothing is bought twice; needed where an LLM is asked.
    budget, workers : float, int, optional
        Dollars that all in the ledger may cost; calls of a function side by side (16).
    base_url, endpoint : str, optional
        An OpenAI-compatible address (``OPENAI_BASE_URL``, else OpenAI's); its name in the ledger.
    samples, temperature, max_tokens, soft, repair, constrain, few_shot, chunk
        Of prompts, `chunk` of staged judges as well: :class:`deep.prompt_pool.PromptJudge`.
    options : AskOptions, optional
        All further options, in place of `ledger`, `budget` and `base_url`.
    progress : callable, optional
        Called with an :class:`AskProgress` now and then. Default: a notebook shows the counts below the cell.

    Returns
    -------
    VoteMatrix
        In the order of the examples; prompts first, then staged judges, then all others.

    Raises
    ------
    InputError, StoppedError
        A value cannot be used; the budget is reached or the run interrupted: the answers so far are in the ledger.

    Examples
    --------
    >>> import deep
    >>> source = "Sales rose to 1,200 units."
    >>> examples = [deep.Example(source, f"Sales {how} units.", how) for how in ("rose to 1200", "fell to 1300")]
    >>> deep.ask(examples, ["numbers", "opposites", "quotes"]).votes.tolist()
    [[1, 1, -1], [0, 0, -1]]
    """
    names = [judges] if isinstance(judges, str) or callable(judges) or not isinstance(judges, Iterable) else judges
    llms = several(llm, "llm")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise InputError(f"`workers` must be a whole number of 1 or more. Got {workers!r}.")
    windows = Chunking.parse(chunk) if isinstance(chunk, str) else chunk
    sampling = Sampling(samples, temperature, max_tokens, soft, repair, constrain, few_shot, windows)
    columns = planned_voters(find_judges(names, sampling), llms, workers)
    if not columns:
        raise InputError("`llm` must be given with judges that ask one. Got none.")
    check_kind(options, (AskOptions, NoneType), "options", "AskOptions")
    file = _file(ledger)
    found = as_examples(examples)
    plan = Plan(examples=found if isinstance(found, Examples) else GivenExamples(found), columns=columns)
    with ExitStack() as stack:
        if options is None and plan.keeps_answers:
            if file is None and plan.asks:
                raise InputError(
                    "`ledger` must be given with judges that ask an LLM: a file for the answers. Got none."
                )
            file = file or ledger_for_once(stack)
            options = AskOptions(ledger=file, budget=budget, base_url=base_url or "")
        if options is not None and plan.asks:
            plan = replace(plan, endpoint=endpoint or options.public_url)
        assert plan.n_examples  # or what is not usable has been refused; it is counted once
        plan.check_questions()
        return _asked(plan, options if plan.keeps_answers else None, progress or notebook_progress())


def _asked(plan: Plan, options: AskOptions | None, progress: ProgressCallback | None) -> VoteMatrix:
    """Ask, tell of what has failed, and return the votes."""
    outcome = run_plan(plan, options, progress)
    for voter, counts in outcome.tally.by_voter.items():
        if counts["failed"]:
            sys.stderr.write(f"{printable(voter)}: {counts['failed']:,} of {counts['done']:,} failed, no vote there\n")
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped, "The answers so far are in the ledger; ask again to go on.")
    return _matrix(plan, list(judged_rows(plan, options, outcome.tally, progress)))


def ledger_for_once(stack: ExitStack) -> str:
    """Return the name of a ledger that goes when `stack` ends: the answers of functions, where none is to keep them."""
    return str(Path(stack.enter_context(TemporaryDirectory(prefix="deep-")), "answers.sqlite"))


def _file(ledger: str | Path | None) -> str | None:
    """Return the path or the URL of a ledger as text."""
    if ledger is None:
        return None
    check_kind(ledger, (str, Path), "ledger", "the path of a file")
    if not Path(ledger).name:
        raise InputError(f"`ledger` must be the path of a file. Got {str(ledger)!r}.")
    return str(ledger)


def _matrix(plan: Plan, rows: Sequence[Row]) -> VoteMatrix:
    return VoteMatrix(
        votes=[[row.judgments[voter].vote for voter in plan.voters] for row in rows],
        example_ids=[row.example.example_id for row in rows],
        voter_names=plan.voters,
        datasets=[str(row.example.dataset) for row in rows],
        labels=[-1 if row.example.label is None else row.example.label for row in rows],
        document_ids=[row.example.document_id or row.example.example_id for row in rows]
        if any(row.example.document_id for row in rows)
        else None,
    )


TEXTS = "texts"
"""The dataset of pairs of texts that come one by one."""

ANYWHERE, PLAIN = Finder(), ScoreOptions()


class TextScorer:
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
        The model cannot be read, was fitted with soft scores, or has a voter that is no judge; or `ask` is missing.

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
        finder: Finder = ANYWHERE,
        options: ScoreOptions = PLAIN,
        endpoint: str | None = None,
        dataset: str = TEXTS,
    ) -> None:
        self.model = model if isinstance(model, Model) else load(model)
        self.options = options
        check_scores_given(self.model, ())
        self.ask, self._dataset = ask, dataset
        self.plan = finder.plan(
            self.model,
            GivenExamples(()),
            lambda: endpoint or ("" if ask is None else ask.public_url),
            None if ask is None else ask.workers,
        )
        self.asks = self.plan.asks
        self._keeps_answers = self.plan.keeps_answers
        if self.asks and ask is None:
            raise InputError(
                "`ask` must be given with a model whose judges ask an LLM: the ledger and its limits. Got none."
            )
        if self.plan.functions and ask is None:  # their answers are kept as long as this object is
            stack = ExitStack()
            self.ask = AskOptions(ledger=ledger_for_once(stack))
            finalize(self, stack.close)
        self._scored = PlanScorer(self.model, self.plan, options)
        self._waiting: dict[str, tuple[Example, Future[Scored]]] = {}
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
        examples = [_example(*texts, dataset=self._dataset) for texts in pairs]
        distinct = {example.example_id: example for example in examples}
        if not distinct:
            return []
        in_turn = self._keeps_answers
        found = self._in_turn(distinct) if in_turn else self._score(list(distinct.values()))
        by_id = {scored.example.example_id: scored for scored in found}
        return [by_id[example.example_id] for example in examples]

    def read(self, examples: Sequence[Example], history: "History | None" = None, *, tell: bool = True) -> list[Scored]:
        """Return examples scored by their judgments, those of LLMs as a ledger has them; nothing is asked.

        Parameters
        ----------
        examples : sequence of Example
            Each with an id of its own in its dataset.
        history : History, optional
            The ledger; needed where a judge asks an LLM.
        tell : bool, default=True
            Name each program that breaks on standard error.
        """
        return self._scored(examples, history, tell=tell)

    def _in_turn(self, examples: dict[str, Example]) -> list[Scored]:
        """Ask about all that wait, or let the caller whose turn it is do so."""
        with self._queue:
            for name, example in examples.items():
                self._waiting.setdefault(name, (example, Future()))
            mine = [self._waiting[name][1] for name in examples]
        with self._turn:
            with self._queue:
                taken, self._waiting = list(self._waiting.values()), {}
            self._answer(taken)
        return [future.result() for future in mine]

    def _answer(self, taken: Sequence[tuple[Example, "Future[Scored]"]]) -> None:
        """Fill in the results of the waiting pairs, or the error that keeps them all from coming."""
        if not taken:
            return
        try:
            found = self._score([example for example, _ in taken])
        except BaseException as error:
            for _, future in taken:
                future.set_exception(error)
        else:
            for (_, future), scored in zip(taken, found, strict=True):
                future.set_result(scored)

    def _score(self, examples: Sequence[Example]) -> list[Scored]:
        if not self._keeps_answers:
            with self._turn:  # lexical checks share what they keep of a text
                return self.read(examples)
        from deep.llm import History

        assert self.ask is not None  # or `__init__` has raised
        outcome = run_plan(replace(self.plan, examples=GivenExamples(examples)), self.ask)
        if outcome.stopped is not None:
            raise StoppedError(outcome.stopped, "The answers so far are in the ledger; ask again to go on.")
        with History(self.ask.ledger) as history:
            return self.read(examples, history)


def _example(source: str, claim: str, question: str | None = None, *, dataset: str) -> Example:
    """Return a pair under a name that its texts give it; a blank question is none."""
    asked = None if question is None or (isinstance(question, str) and not question.strip()) else question
    for name, text in (("source", source), ("claim", claim), *([] if asked is None else [("question", asked)])):
        if not isinstance(text, str):
            raise InputError(f"`{name}` must be text. Got a {type(text).__name__}.")
        if not text.strip() or "\0" in text:
            raise InputError(f"`{name}` must be text. Got {'a NUL byte' if text.strip() else 'nothing'}.")
    texts = f"{len(source)}:{source}{claim}"
    texts = texts if asked is None else f"?{len(asked)}:{asked}{texts}"  # which no pair without a question begins with
    digest = hashlib.sha256(texts.encode(errors="surrogatepass"))
    return Example(source, claim, digest.hexdigest()[:32], dataset=dataset, question=asked)

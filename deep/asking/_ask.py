"""Votes on examples, in Python: the same engine, ledger and limits as `deep ask`."""

# Python's help shows the names of types then, and not the module of each.
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType

import numpy as np

from deep._util.checks import check_kind, name_tuple
from deep._util.frames import Frame
from deep._util.scales import BINARY, Scale
from deep.asking._functions import AnyFunction
from deep.asking._options import AskOptions, ProgressCallback, Sampling, notebook_progress
from deep.asking._plan import Plan, planned_voters
from deep.asking._registry import find_judges
from deep.asking._run import run_plan
from deep.asking._write import judged_rows
from deep.datasets import Examples, as_examples
from deep.exceptions import InputError, StoppedError, note
from deep.judges import Judge
from deep.prompt_pool import Chunking, FewShot
from deep.records import ABSTAIN, Example, Judgment, VoteMatrix

# The dataset of examples that name none.
UNNAMED_DATASET = "examples"


class InMemoryExamples(Examples):
    """Examples that are in memory."""

    name = UNNAMED_DATASET

    def __init__(self, examples: Iterable[Example]) -> None:
        # An item is known by its dataset and its id: without a dataset it could not be kept.
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
    llms = name_tuple(llm, "llm")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise InputError(f"`workers` must be a whole number of 1 or more. Got {workers!r}.")
    windows = Chunking.parse(chunk) if isinstance(chunk, str) else chunk
    sampling = Sampling(samples, temperature, max_tokens, soft, repair, constrain, few_shot, windows)
    columns = planned_voters(find_judges(names, sampling), llms, workers)
    if not columns:
        raise InputError("`llm` must be given with judges that ask one. Got none.")
    check_kind(options, (AskOptions, NoneType), "options", "AskOptions")
    if ledger is not None:
        check_kind(ledger, (str, Path), "ledger", "the path of a file")
        if not Path(ledger).name:
            raise InputError(f"`ledger` must be the path of a file. Got {str(ledger)!r}.")
    file = None if ledger is None else str(ledger)
    result = as_examples(examples)
    plan = Plan(examples=result if isinstance(result, Examples) else InMemoryExamples(result), columns=columns)
    with ExitStack() as stack:
        if options is None and plan.keeps_answers:
            if file is None and plan.asks:
                raise InputError(
                    "`ledger` must be given with judges that ask an LLM: a file for the answers. Got none."
                )
            # Without a ledger of one's own the answers of functions last as long as this call.
            file = file or temporary_ledger(stack)
            options = AskOptions(ledger=file, budget=budget, base_url=base_url or "")
        if options is not None and plan.asks:
            plan = replace(plan, endpoint=endpoint or options.public_url)
        assert plan.n_examples  # or what is not usable has been refused; it is counted once
        plan.check_questions()
        return _run_and_read_votes(plan, options if plan.keeps_answers else None, progress or notebook_progress())


def _run_and_read_votes(plan: Plan, options: AskOptions | None, progress: ProgressCallback | None) -> VoteMatrix:
    """Ask, tell of what has failed, and return the votes."""
    outcome = run_plan(plan, options, progress)
    # A failed call is no vote and no error, so it would go unnoticed.
    for voter, counts in outcome.tally.by_voter.items():
        if counts["failed"]:
            note(f"{voter}: {counts['failed']:,} of {counts['done']:,} failed, no vote there")
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped, "The answers so far are in the ledger; ask again to go on.")
    rows = list(judged_rows(plan, options, outcome.tally, progress))
    examples = [example for example, _ in rows]
    has_documents = any(example.document_id for example in examples)
    scales = [plan.functions[voter].judge.scale if voter in plan.functions else None for voter in plan.voters]
    answers = [[judgments[voter] for voter in plan.voters] for _, judgments in rows]
    return VoteMatrix(
        votes=_grades_on_scales(answers, scales) if any(scales) else [[one.vote for one in row] for row in answers],
        scales=[scale or BINARY for scale in scales] if any(scales) else None,
        item_ids=[example.example_id for example in examples],
        voter_names=plan.voters,
        datasets=[str(example.dataset) for example in examples],
        labels=[-1 if example.label is None else example.label for example in examples],
        document_ids=[example.document_id or example.example_id for example in examples] if has_documents else None,
    )


def _grades_on_scales(answers: Sequence[Sequence[Judgment]], scales: Sequence[Scale | None]) -> list[list[float]]:
    """Return answers as the judges give them, NaN where there is none: grades of those with a scale, else votes."""
    return [
        [
            np.nan if one.vote == ABSTAIN else one.vote if scale is None or one.score is None else one.score
            for one, scale in zip(row, scales, strict=True)
        ]
        for row in answers
    ]


def temporary_ledger(stack: ExitStack) -> str:
    """Return the name of a ledger that goes when `stack` ends: the answers of functions, where none is to keep them."""
    return str(Path(stack.enter_context(TemporaryDirectory(prefix="deep-")), "answers.sqlite"))

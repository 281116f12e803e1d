"""Votes on examples, in Python: the same engine, ledger and limits as `deep votes`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from deep.asking._options import AskOptions, ProgressCallback, notebook_progress
from deep.asking._plan import Plan, planned_voters
from deep.asking._registry import Sampling, find_judges
from deep.asking._run import run_plan
from deep.asking._vote_files import Row
from deep.asking._write import read_rows
from deep.datasets import Examples
from deep.exceptions import InputError, StoppedError
from deep.judge import Judge
from deep.prompt_pool import Chunking, FewShot
from deep.records import Example, VoteMatrix

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
    examples: Iterable[Example],
    judges: str | Judge | Iterable[str | Judge],
    *,
    llm: str | Sequence[str] = (),
    ledger: str | None = None,
    budget: float | None = None,
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

    It can be called inside a running event loop, as in a notebook, where it waits for its own.

    Parameters
    ----------
    examples : iterable of Example
        Each with an id of its own within its dataset.
    judges : iterable of str or Judge
        By name or as objects: pools (``deep-9``), prompts, staged judges (``stepwise``), lexical checks (``numbers``,
        all of them: ``lexical``), encoders by id on the hub or folder; see :func:`find_judges`.
    llm : str or sequence of str, optional
        The LLMs to ask, as the endpoint names them; every judge that needs one asks each of them.
    ledger : str, optional
        The file that keeps every request and its answer, so that nothing is bought twice; needed where an LLM is
        asked.
    budget : float, optional
        Dollars that the ledger's total must not pass.
    base_url : str, optional
        An OpenAI-compatible endpoint; default: the environment's ``OPENAI_BASE_URL``, else OpenAI.
    endpoint : str, optional
        Its name in the ledger, if its address may change.
    samples, temperature, max_tokens, soft, repair, constrain, few_shot, chunk
        Of prompts that are named, `chunk` (also ``"SIZE:OVERLAP"``) of staged judges as well; see
        :class:`deep.prompt_pool.PromptJudge`.
    options : AskOptions, optional
        All further options, in place of `ledger`, `budget` and `base_url`.
    progress : callable, optional
        Called with a :class:`AskProgress` as the run goes on. Default: in a notebook, the counts are shown below the
        cell; elsewhere nothing is printed.

    Returns
    -------
    VoteMatrix
        In the order of the examples; prompts first, then staged judges, then judges that need no LLM.

    Raises
    ------
    InputError
        A judge is not known, an LLM or the ledger is missing, or a value is out of range.
    StoppedError
        The budget is reached, or the run was interrupted; the answers so far are in the ledger.

    Examples
    --------
    >>> from deep import Example
    >>> from deep.asking import ask
    >>> examples = [
    ...     Example("Sales rose to 1,200 units.", "Sales fell to 1200 units.", "a"),
    ...     Example("Sales rose to 1,200 units.", "Sales rose to 1,300 units.", "b"),
    ... ]
    >>> votes = ask(examples, ["numbers", "opposites", "quotes"])
    >>> [name.partition("@")[0] for name in votes.voter_names]
    ['lexical-numbers', 'lexical-opposites', 'lexical-quotes']
    >>> votes.votes.tolist()
    [[1, 0, -1], [0, 1, -1]]
    """
    names: Iterable[str | Judge] = [judges] if isinstance(judges, str | Judge) else judges
    llms = [llm] if isinstance(llm, str) else list(llm)
    windows = Chunking.parse(chunk) if isinstance(chunk, str) else chunk
    sampling = Sampling(samples, temperature, max_tokens, soft, repair, constrain, few_shot, windows)
    columns = planned_voters(find_judges(names, sampling), llms)
    asks = any(column.judge.needs_llm for column in columns)
    if not columns:
        raise InputError("`llm` must be given with judges that ask one. Got none.")
    chosen = (options or _options(ledger, budget, base_url)) if asks else None
    name = "" if chosen is None else endpoint or chosen.public_url
    given = examples if isinstance(examples, Examples) else GivenExamples(examples)
    plan = Plan(examples=given, columns=columns, endpoint=name)
    plan.examples.check()
    progress = progress or notebook_progress()
    outcome = run_plan(plan, chosen, progress)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped, "The answers so far are in the ledger; ask again to go on.")
    return _matrix(plan, list(read_rows(plan, chosen, outcome.tally, progress)))


def _options(ledger: str | None, budget: float | None, base_url: str | None) -> AskOptions:
    if ledger is None:
        raise InputError("`ledger` must be given with judges that ask an LLM: a file for the answers. Got none.")
    return AskOptions(ledger=ledger, budget=budget, base_url=base_url or "")


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

"""A plan: all judges, each with the LLM that it asks, on all examples; and the judgments that have come of it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from heapq import nsmallest
from itertools import chain, groupby, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from deep._util.names import check_name, family_of
from deep._util.scales import Scale
from deep.asking._functions import FunctionCaller, FunctionJudge
from deep.asking._options import NO_SOURCE, NOT_ASKED, OPENAI_URL, AskOptions, model_of
from deep.asking._replay import ProgramEntry, ProgramId, Replay, RequestProgram, as_requests
from deep.datasets import Examples, read_examples, read_labels, read_texts, table_columns
from deep.exceptions import InputError, note
from deep.judges import Judge, OfflineJudge, Question, run_program
from deep.llm import Provider, Request
from deep.prompt_pool import FewShot, PromptJudge
from deep.records import Example, Judgment, Reason

if TYPE_CHECKING:
    from deep.llm import History

# At most this many claims about one document are asked about together, so that no document fills the memory. Chosen; no
# measurement is known.
CLAIMS_AT_ONCE = 50

# The kinds of judges whose evidence is words or sentences of the claim; others quote the source.
ABOUT_CLAIM = ("lexical", "staged")


@dataclass(frozen=True)
class PlannedVoter:
    """One column of the votes to come.

    Parameters
    ----------
    judge : Judge
        Who votes in this column.
    llm : str
        The LLM that the judge asks; empty where it asks none.
    workers : int, optional
        The most calls side by side of a function that does not say itself that they are fewer.
    """

    judge: Judge
    llm: str
    workers: int | None = None

    @cached_property
    def caller(self) -> FunctionCaller | None:
        """The caller of a judge that is a function, whoever asks; None where it is none."""
        return FunctionCaller(self.judge, self.workers) if isinstance(self.judge, FunctionJudge) else None

    @cached_property
    def name(self) -> str:
        """The name of the column."""
        return self.judge.voter(self.llm)

    def metadata(self) -> dict[str, object]:
        """Return the entry of the voter in the metadata of vote files."""
        return {**self.judge.details, **({"model": self.llm} if self.judge.needs_llm else {})}


def planned_voters(
    judges: Iterable[Judge], llms: Sequence[str], workers: int | None = None
) -> tuple[PlannedVoter, ...]:
    """Return a voter for each judge and LLM: prompts first, then staged judges, then judges that need no LLM."""
    # The sort is stable: within a kind the order is the user's.
    sorted_judges = sorted(judges, key=lambda judge: (not judge.needs_llm, not isinstance(judge, PromptJudge)))
    pairs = ((judge, llm) for judge in sorted_judges for llm in (llms if judge.needs_llm else ("",)))
    return tuple(PlannedVoter(judge, llm, workers) for judge, llm in pairs)


def _state_of(examples: Examples) -> tuple[int, int] | None:
    """Return when the file of examples was last changed, and its size; None where they are in no file."""
    path = getattr(examples, "path", None)
    if not isinstance(path, Path) or not path.is_file():
        return None
    state = path.stat()
    return state.st_mtime_ns, state.st_size


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The judgments that a run is to make.

    Parameters
    ----------
    examples : Examples
        Those to judge, read anew at each pass; with `sample` some of them.
    columns : tuple of PlannedVoter
        One for each column of votes, in the order of the table; no two of one name.
    endpoint : str, default=''
        The endpoint's name in the ledger; empty where no LLM is asked.
    sample : int, optional
        How many of the examples are judged; all by default.
    file_state : tuple of int, optional
        When the file of the examples was last changed, and its size.
    """

    examples: Examples
    columns: tuple[PlannedVoter, ...]
    endpoint: str = ""
    sample: int | None = None
    file_state: tuple[int, int] | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "file_state", _state_of(self.examples))
        if self.sample is not None and self.sample < 1:
            raise InputError(f"`sample` must be 1 or more examples. Got {self.sample}.")
        name = next((v for i, v in enumerate(self.voters) if v in self.voters[:i]), None)
        if name is not None:
            raise InputError(
                f"`judges` (prompts, LLMs, checks) must name each voter once. Got {name!r} twice. Leave one out: "
                "a pool, or `all`, already includes its judges."
            )
        for voter in self.voters:
            check_name(voter, "llm")
        # Tried on every example now: a prompt that lacks labeled examples must not end a paid run.
        shot_sets = {few.version: few for judge, _ in self.prompts if (few := judge.few_shot) is not None}
        for example in self.complete if shot_sets else ():
            for few in shot_sets.values():
                few.choose(example)

    def check_unchanged(self) -> None:
        """Raise where the file of the examples is another now: votes were asked for on what it held."""
        if _state_of(self.examples) != self.file_state:
            raise InputError(
                f"`examples` must not change during a run. Got {self.examples.origin}, which has changed since. Run "
                "the same command again: the answers so far are kept."
            )

    @cached_property
    def voters(self) -> list[str]:
        """The columns of the vote matrix."""
        return [column.name for column in self.columns]

    @cached_property
    def prompts(self) -> list[tuple[PromptJudge, PlannedVoter]]:
        """The voters made of a prompt, whose requests can all be told at once."""
        return [(column.judge, column) for column in self.columns if isinstance(column.judge, PromptJudge)]

    @cached_property
    def staged(self) -> list[PlannedVoter]:
        """The voters whose questions depend on the answers before."""
        return [c for c in self.columns if c.judge.needs_llm and not isinstance(c.judge, PromptJudge)]

    @cached_property
    def functions(self) -> dict[str, FunctionCaller]:
        """The callers of the voters that are functions, which may ask whom they like, by voter."""
        return {column.name: caller for column in self.columns if (caller := column.caller) is not None}

    def calls(self, caller: FunctionCaller, examples: Iterable[Example] | None = None) -> Iterator[Request]:
        """Yield the calls of a function on all or some examples."""
        return (caller.request(e) for e in (self.chosen if examples is None else examples) if e.has_texts)

    @cached_property
    def offline(self) -> list[PlannedVoter]:
        """The voters that need no LLM and cost nothing."""
        return [c for c in self.columns if not (c.judge.needs_llm or c.caller)]

    @cached_property
    def providers(self) -> dict[str, Provider]:
        """The providers of LLMs that are named after theirs; none where the endpoint is given."""
        if self.endpoint != OPENAI_URL:
            return {}
        result = {column.llm: Provider.of(column.llm) for column in self.columns if column.judge.needs_llm}
        return {llm: provider for llm, provider in result.items() if provider is not None}

    def with_providers(self, options: AskOptions) -> AskOptions:
        """Return how to ask, with the providers of the plan's LLMs."""
        if not self.providers:
            return options
        # A batch is made and collected at one endpoint, by its own address and key.
        if options.batch:
            llm = next(iter(self.providers))
            raise InputError(
                f"`batch` must be given with the address of the LLM. Got {llm!r}. Give --base-url and --api-key-env."
            )
        return replace(options, providers=self.providers)

    @property
    def asks_default(self) -> bool:
        """Whether an LLM is asked that is not named after its provider."""
        return any(column.judge.needs_llm and column.llm not in self.providers for column in self.columns)

    @property
    def asks(self) -> bool:
        """Whether there is anything to ask an endpoint."""
        return bool(self.prompts or self.staged)

    @property
    def keeps_answers(self) -> bool:
        """Whether there is a judge whose answers a ledger keeps: one that asks an LLM, or a function."""
        return self.asks or bool(self.functions)

    def check_costs(self, budget: float | None) -> None:
        """Raise where there is a budget and the cost of a function is not known."""
        # What a function pays is its own affair, so that only it can say what a call costs.
        unknown = [name for name, caller in self.functions.items() if caller.judge.cost is None]
        if budget is not None and unknown:
            raise InputError(f"`budget` needs the `cost` of every function. Got {unknown[0]!r} without one.")

    @cached_property
    def claim_first(self) -> frozenset[str]:
        """The voters whose evidence is words or sentences of the claim; that of others is looked for in the source."""
        return frozenset(c.name for c in self.columns if c.judge.details.get("kind") in ABOUT_CLAIM)

    @property
    def graders(self) -> dict[str, Scale]:
        """The voters that declare a scale: their answers stand in the place of votes."""
        return {name: one.judge.scale for name, one in self.functions.items() if one.judge.scale is not None}

    def check_questions(self) -> None:
        """Raise where prompts show a question and no example has one; those that lack it among others go without."""
        showing = [judge.name for judge, _ in self.prompts if judge.prompt.shows_question]
        if showing and not any(example.question for example in self.examples):
            raise InputError(
                f"`question` must be a column of the examples for the prompt {showing[0]}, which shows it. Got none "
                f"in any row of {self.examples.origin}. Add it, map it (--question-column), or ask other prompts."
            )

    @cached_property
    def n_examples(self) -> int:
        """The number of examples; the file is read once to check it."""
        # Read to its end: a fault in the last row must come before the first question is paid for.
        n = self.examples.check()
        return n if self.sample is None else min(n, self.sample)

    @cached_property
    def _sample_items(self) -> frozenset[tuple[str, str]]:
        """The items of the sample: those whose names have the lowest hashes, so that a larger one holds a smaller."""
        # By hashes and not at random, so that the same sample comes again, also on another machine.
        items = ((str(example.dataset), example.example_id) for example in self.examples)
        return frozenset(nsmallest(self.sample or 0, items, key=lambda item: sha256(repr(item).encode()).digest()))

    @property
    def chosen(self) -> Iterable[Example]:
        """The examples that are judged: those of the sample, or all."""
        return self.examples if self.sample is None else self.examples.of(self._sample_items)

    @property
    def complete(self) -> Iterator[Example]:
        """The examples that have a source and a claim: no judge is asked about others."""
        return (example for example in self.chosen if example.has_texts)

    @cached_property
    def n_complete(self) -> int:
        """The number of examples that judges are asked about; all are checked first."""
        return sum(1 for _ in self.complete) if self.n_examples else 0

    @property
    def n_requests(self) -> int:
        """The number of requests of prompts; those of staged judges left out: they are known only as answers come."""
        cut = [judge for judge, _ in self.prompts if judge.chunk is not None]
        whole = self.n_complete * sum(judge.samples for judge, _ in self.prompts if judge.chunk is None)
        return whole + sum(judge.n_questions(example) for example in (self.complete if cut else ()) for judge in cut)

    def requests(self, examples: Iterable[Example] | None = None) -> Iterator[Request]:
        """Yield the requests of all prompts, those that concern one document together, about all or some examples.

        No more than one document is held.
        """
        for _, group in groupby(self.chosen if examples is None else examples, key=lambda example: example.source):
            while claims := list(islice(group, CLAIMS_AT_ONCE)):
                yield from self._of_document(claims)

    def _of_document(self, examples: Sequence[Example]) -> Iterator[Request]:
        """Yield the requests in the order in which a prefix cache serves most of them: by LLM, then by prefix."""
        llms = dict.fromkeys(column.llm for _, column in self.prompts)
        for llm, first in product(llms, (True, False)):
            columns = [c for judge, c in self.prompts if c.llm == llm and judge.prompt.document_first is first]
            requests = (q for e, column in product(examples, columns) for q in next(self.program(column, e), ()))
            has_chunks = first and any(judge.chunk is not None for judge, _ in self.prompts)
            # Windows come example by example; the server's cache serves them best window by window.
            yield from _by_group(requests) if has_chunks else requests

    def program(self, column: PlannedVoter, example: Example, *, tell: bool = False) -> RequestProgram[Judgment]:
        """Return the requests of one voter about one example, as a program that ends with a judgment.

        Nothing is asked where there is nothing to judge. A judge that breaks ends without a vote: the answers of all
        others are paid for, and good.
        """
        if not example.has_texts:
            return NO_SOURCE
        identity, caller = ProgramId(column.name, str(example.dataset), example.example_id), column.caller
        try:
            if caller is None:
                provider = self.providers.get(column.llm)
                # The provider knows the LLM by its own name; the column keeps that of the provider before it.
                llm = column.llm if provider is None else model_of(column.llm)
                endpoint = self.endpoint if provider is None else provider.endpoint
                return (yield from as_requests(column.judge.program(example), identity, llm, endpoint))
            judgment = caller.answers.pop(caller.judge.key(example), None)
            if judgment is None:
                request = caller.request(example)
                (reply,) = yield [request]
                judgment = request.context.read(reply)
        except Exception as error:
            return failed_vote(identity, "failed" if caller else "unparsable", error, tell=tell)
        return judgment

    def programs(
        self,
        examples: Iterable[Example] | None = None,
        columns: Sequence[PlannedVoter] | None = None,
        *,
        tell: bool = False,
    ) -> Iterator[ProgramEntry]:
        """Yield the programs of the staged voters, or of other ones, about all or some examples.

        Parameters
        ----------
        examples : iterable of Example, optional
            Default: those of the plan, of its sample where it has one.
        columns : sequence of PlannedVoter, optional
            Default: the staged voters of the plan.
        tell : bool, default=False
            Name each program that breaks on standard error.
        """
        for example in self.chosen if examples is None else examples:
            for column in self.staged if columns is None else columns:
                identity = ProgramId(column.name, str(example.dataset), example.example_id)
                yield identity, column.llm, self.program(column, example, tell=tell)

    def metadata(self, base_url: str | None) -> dict[str, object]:
        """Return the account in the vote files of how they came to be."""
        judges = [judge for judge, _ in self.prompts]
        return {
            "schema_version": 1,
            "base_url": base_url,
            "endpoint": self.endpoint,
            "samples": max((judge.samples for judge in judges), default=1),
            "soft": any(judge.soft for judge in judges),
            "repair": any(judge.repair for judge in judges),
            "constrain": sorted({judge.constrain for judge in judges}),
            "voters": {column.name: column.metadata() for column in self.columns},
        }


def _by_group(requests: Iterable[Request]) -> Iterator[Request]:
    """Yield requests group by group: all questions about one window of a document, then those about the next."""
    groups: dict[str | None, list[Request]] = {}
    for request in requests:
        groups.setdefault(request.group, []).append(request)
    return chain.from_iterable(groups.values())


def failed_vote(identity: ProgramId, reason: Reason, error: Exception, *, tell: bool) -> Judgment:
    """Return no vote of a judge that broke, and name it on standard error with `tell`."""
    if tell:
        note(f"{identity.voter} broke on {identity.item!r} of {identity.dataset!r}: {error!r}")
    return Judgment(vote=-1, reason=reason)


# The parameter that an error of the readers names; a user of this one knows only `few_shot`.
_PARAMETER_PREFIX = re.compile(r"^`\w+`")


def read_few_shot(path: str | Path, shots: int = 4, *, examples: str | Path | None = None) -> FewShot:
    r"""Read labeled examples for prompts to show.

    Parameters
    ----------
    path : str or Path
        A benchmark or a file of examples with the columns source, claim and label; or a table of votes, or of labels
        alone, whose texts are those of the examples that it remembers or that `examples` names.
    shots : int, default=4
        How many of them a prompt shows; see :class:`deep.prompt_pool.FewShot`.
    examples : str or Path, optional
        A benchmark or a file of examples in which the items of a table of votes are found.

    Raises
    ------
    InputError
        The file cannot be read, or has too few labeled examples whose texts are known.

    Examples
    --------
    >>> import tempfile
    >>> from deep import Example
    >>> from deep.asking import read_few_shot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "old.csv")
    ...     _ = path.write_text("source,claim,label\nIt rained.,It was wet.,1\nAnn won.,Bob won.,0\n")
    ...     chosen = read_few_shot(path, 2).choose(Example("It hailed.", "Ice fell.", "1", dataset="new"))
    >>> sorted(shot.claim for shot in chosen)
    ['Bob won.', 'It was wet.']
    """
    file = Path(path)
    is_table = file.name.lower().endswith((".csv", ".csv.gz", ".parquet")) and file.is_file()
    try:
        # A file that has items and labels without their texts.
        is_bare = is_table and {"source", "item_id"} & set(table_columns(file)) == {"item_id"}
        labeled = tuple(_examples_of_votes(path, examples) if is_bare else read_examples(path))
        labeled = tuple(example for example in labeled if example.has_texts)
    except InputError as error:
        raise InputError(_PARAMETER_PREFIX.sub("`few_shot`", str(error))) from None
    return FewShot(labeled, shots, family_of)


def _examples_of_votes(path: str | Path, examples: str | Path | None) -> Iterable[Example]:
    labels = read_labels(path)
    labels_by_item = dict(zip(zip(labels.datasets, labels.item_ids, strict=True), labels.labels.tolist(), strict=True))
    remembered = read_texts(path, list(labels_by_item)).examples
    # What the table itself remembers counts before the file that is named.
    result = {**(read_texts(path, list(labels_by_item), examples=examples).examples if examples else {}), **remembered}
    for item, example in result.items():
        yield replace(example, label=labels_by_item[item])


def judgments_of_plan(
    plan: Plan, examples: Sequence[Example], history: "History | None", *, tell: bool = True, stopped: str | None = None
) -> list[dict[str, Judgment]]:
    """Return the judgments of each example by voter, in the order of the plan.

    Several samples are pooled, a request without an answer is ``failed``, a judge that has a question which was never
    asked is ``not_asked``, and one that breaks is ``unparsable`` and, with `tell`, named on standard error.

    Parameters
    ----------
    plan : Plan
        Its voters judge, and its endpoint's answers are read; its own examples are not.
    examples : sequence of Example
        All or some of the plan's; each with an id of its own in its dataset.
    history : History or None
        The ledger; None where no LLM was asked and no function called.
    tell : bool, default=True
        Name each judge that breaks, and the item, on standard error.
    stopped : str, optional
        Why the run ended: where it was ``interrupted``, no judge judges that is not asked.
    """
    asking_columns = [column for column in plan.columns if column.judge.needs_llm or column.caller]
    rows: dict[tuple[str, str], dict[str, Judgment]] = {(str(e.dataset), e.example_id): {} for e in examples}
    if asking_columns:
        replay = Replay(lambda: plan.programs(examples, asking_columns, tell=tell), plan.endpoint, history)
        for identity, judgment in replay.values():
            was_asked = identity not in replay.not_asked
            rows[identity.dataset, identity.item][identity.voter] = judgment if was_asked else NOT_ASKED
    # Whoever presses Ctrl-C waits for no encoder.
    none = [dict.fromkeys((column.name for column in plan.offline), NOT_ASKED)] * len(examples)
    offline = none if stopped == "interrupted" else judge_offline(plan.offline, examples, tell=tell)
    judgments = [answers | others for answers, others in zip(rows.values(), offline, strict=True)]
    # Rows without texts keep their place in the table, so that it has a row for every example.
    nothing = dict.fromkeys(plan.voters, NO_SOURCE)
    return [result if example.has_texts else nothing for example, result in zip(examples, judgments, strict=True)]


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
    # A network is quicker on a batch than on its examples one by one.
    many = [column for column in columns if complete and hasattr(column.judge, "label_many")]
    batches = {column.name: iter(cast("Any", column.judge).label_many(complete)) for column in many}
    for example in examples:
        here = batches if example.has_texts else {}
        yield {c.name: next(here[c.name]) if c.name in here else _judge_example(c, example, tell=tell) for c in columns}


def _judge_example(column: PlannedVoter, example: Example, *, tell: bool) -> Judgment:
    if not example.has_texts:
        return NO_SOURCE
    judge = column.judge
    try:
        if isinstance(judge, OfflineJudge):  # its program would be one more generator for each check of a text
            return judge.label(example)
        return run_program(judge.program(example), _ask_nobody)
    except Exception as error:
        return failed_vote(ProgramId(column.name, str(example.dataset), example.example_id), "failed", error, tell=tell)


def _ask_nobody(question: Question) -> NoReturn:
    raise TypeError(f"A judge that needs no LLM must ask no question. Got {question.step!r}.")

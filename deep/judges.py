"""The judge: what votes on an example, by asking an LLM or by itself.

Every judge is a program over one example. The program of a prompt asks one question a sample, that of a staged judge
asks several in turn, and that of a lexical check or an encoder asks none. All end with a judgment.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from deep._util.names import VoterName, parse_voter, voter_name
from deep.records import Example, Judgment

__all__ = [
    "REPAIR",
    "Choice",
    "Judge",
    "LLMJudge",
    "LLMReply",
    "OfflineJudge",
    "Program",
    "Question",
    "VoteQuestion",
    "VoterName",
    "parse_voter",
    "run_program",
    "voter_name",
]

T = TypeVar("T")

# The step of a question that asks once more for the answer that an earlier reply lacks.
REPAIR = "repair"


class LLMReply(Protocol):
    """The reply of an LLM to one request; `cost`, `seconds` and `logprobs` are read where a reply has them."""

    @property
    def text(self) -> str | None:
        """The text of the reply."""

    @property
    def finish_reason(self) -> str | None:
        """Why the LLM stopped writing."""

    @property
    def refusal(self) -> str | None:
        """The text that came in place of an answer."""

    @property
    def model(self) -> str | None:
        """The LLM that answered."""

    @property
    def tokens(self) -> Mapping[str, int]:
        """Usage by kind: input, cached, output, reasoning."""


@dataclass(frozen=True)
class Choice:
    """The answers that an endpoint is told to choose from.

    Parameters
    ----------
    fields : mapping
        Of the request: the constraint as the endpoint takes it.
    answers : frozenset of str
        The replies that keep to the constraint, without their white space.

    Examples
    --------
    >>> from deep.judges import Choice
    >>> Choice({"structured_outputs": {"choice": ["YES", "NO"]}}, frozenset({"YES", "NO"})).allows(" YES")
    True
    """

    fields: Mapping[str, object]
    answers: frozenset[str]

    def allows(self, text: str) -> bool:
        """Return whether a reply keeps to the constraint; hidden reasoning before it does not count."""
        # A model that reasons aloud does so before its answer, also where the answer is bound to a choice.
        return "".join(text.rpartition("</think>")[2].split()) in self.answers


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request that a program wants answered.

    Parameters
    ----------
    step : str
        The stage it belongs to, for reports; two questions with the same messages, schema, parameters and sample
        are one question, whatever their step.
    messages : list of dict
        Chat messages with `role` and `content`.
    schema : mapping, optional
        JSON schema of the reply.
    parameters : mapping, default={}
        Sent along with the request; `model` among them asks another model than the program's own.
    sample : int, default=0
        Which of several draws of the same question.
    choice : Choice, optional
        Constrains the reply where the endpoint can. It is no part of the question: an answer in the ledger stands,
        constrained or not.
    """

    step: str
    messages: list[dict[str, str]]
    schema: Mapping[str, object] | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    sample: int = 0
    choice: Choice | None = None


@dataclass(frozen=True, kw_only=True)
class VoteQuestion(Question):
    """A question whose reply is a vote by itself, which the ledger keeps beside the reply.

    Parameters
    ----------
    version : str
        Of the judge: its votes are its own, even where another judge asks the same in the same words.
    read : callable
        Returns the judgment of a reply; of None, where the request failed for good.
    group : str, optional
        Shared by questions that begin alike, so that a prefix cache serves them.
    repair : callable, optional
        Returns the question that asks once more for the answer, given the text of a reply in which there is none.
    part : str, optional
        The part of the example that it asks about, where the votes on several parts make up one.
    """

    version: str
    read: Callable[[LLMReply | None], Judgment]
    group: str | None = None
    repair: "Callable[[str], VoteQuestion] | None" = None
    part: str | None = None

    @property
    def is_repair(self) -> bool:
        """Whether this is such a question itself, whose answer stands for the one that could not be read."""
        return self.step == REPAIR


# Yields the questions to ask next, side by side; is sent their replies in order, None where a call failed for good.
# It must be deterministic given the replies, because a call layer replays it from its ledger.
Program = Generator[Sequence[Question], Sequence[LLMReply | None], T]


@runtime_checkable
class Judge(Protocol):
    """The protocol of a judge of examples: a prompt, a staged judge, a lexical check, an encoder, a class of your own.

    :class:`LLMJudge` and :class:`OfflineJudge` supply all but the name, the version and the judging. A judge that
    is quicker on many examples also has ``label_many(examples)``, which must equal its program one by one.
    """

    @property
    def name(self) -> str:
        """The judge's name, whatever it runs on."""

    @property
    def version(self) -> str:
        """SHA-256 of all that decides what it asks and how it reads the answers, 64 hexadecimal digits."""

    @property
    def needs_llm(self) -> bool:
        """Whether its program asks questions."""

    @property
    def details(self) -> Mapping[str, object]:
        """The description of the judge in the metadata of a vote file, its LLM left out."""

    def voter(self, llm: str, /) -> str:
        """Return the name of the column that the judge fills when it asks `llm`, which other judges ignore."""

    def program(self, example: Example, /) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""


class _Identity(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...


class LLMJudge(ABC):
    """A judge that asks an LLM; a subclass has `name`, `version` and `program`."""

    needs_llm: ClassVar[bool] = True

    @property
    def details(self: _Identity) -> Mapping[str, object]:
        """See :class:`Judge`."""
        return {"kind": "staged", "judge": self.name, "judge_hash": self.version}

    def voter(self: _Identity, llm: str) -> str:
        """Return the name of the column that this judge and `llm` fill: name, 8 digits of the version, LLM."""
        return voter_name(self.name, self.version, llm)

    def most_calls(self, example: Example, /) -> int | None:  # noqa: ARG002  a bound may depend on the example
        """Return the most calls that one example can take; None where there is no bound."""
        return None

    @abstractmethod
    def program(self, example: Example, /) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""


class OfflineJudge(ABC):
    """A judge that needs no LLM; a subclass has `name`, `version` and `label`."""

    needs_llm: ClassVar[bool] = False

    @property
    def details(self: _Identity) -> Mapping[str, object]:
        """See :class:`Judge`."""
        return {"kind": "offline", "judge": self.name, "version": self.version, "model": None}

    def voter(self: _Identity, llm: str = "") -> str:  # noqa: ARG002  no LLM is asked
        """Return the name of its column, whatever LLM other judges ask: name and 8 digits of the version."""
        return voter_name(self.name, self.version)

    @abstractmethod
    def label(self, example: Example, /) -> Judgment:
        """Judge one example."""

    def program(self, example: Example, /) -> Program[Judgment]:
        """Return a program without questions that ends with the judgment of one example."""
        yield from ()
        return self.label(example)


def run_program(program: Program[T], ask: Callable[[Question], LLMReply | None]) -> T:
    """Run a program to its end.

    Parameters
    ----------
    program : generator
        Yields questions, some at a time, is sent a reply to each of them, and returns a value.
    ask : callable
        Returns the reply to a question; None where the call failed for good.

    Returns
    -------
    object
        The value that the program returns.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep.judges import Question, run_program
    >>> def twice():
    ...     first, = yield [Question(step="ask", messages=[{"role": "user", "content": "rain?"}])]
    ...     second, = yield [Question(step="check", messages=[{"role": "user", "content": first.text + "?"}])]
    ...     return second.text
    >>> run_program(twice(), lambda question: SimpleNamespace(text=question.messages[0]["content"].upper()))
    'RAIN??'
    """
    try:
        questions = next(program)
        while True:
            questions = program.send([ask(question) for question in questions])
    except StopIteration as end:
        value: T = end.value
        return value

"""The bases of judges made of a network: their names, batches of examples, and parts of a source beside a claim."""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, softmax

from deep._util.checks import Floats
from deep._util.names import sentence_spans
from deep.exceptions import InputError
from deep.integrations.encoders._network import Network
from deep.judges import OfflineJudge, voter_name
from deep.prompt_pool import Span
from deep.records import ABSTAIN, Example, Judgment, Reason

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class NetworkJudge(OfflineJudge):
    """A judge whose subclass judges batches, and has `network`, `name`, `version` and `threshold`."""

    network: Network
    name: str
    version: str
    threshold: float

    @property
    def model_id(self) -> str:
        """Return the hub id of the model, or the name of its folder."""
        return self.network.model_id

    @property
    def settings(self) -> Mapping[str, object]:
        """Return the options of the loader that make this judge again."""
        return {"threshold": self.threshold, "max_tokens": self.network.max_tokens}

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judges.Judge`."""
        facts = {"kind": self.name.partition("-")[0], "judge": self.name, "version": self.version}
        return {**facts, "model": self.model_id, "settings": dict(self.settings)}

    def _set_version(self, **more: object) -> None:
        """Set `version`: a hash of the settings, of the model's files, and of what else decides the votes."""
        facts = {"kind": self.name, "model": self.network.fingerprint, **more, **self.settings}
        object.__setattr__(self, "version", sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest())

    def voter(self, llm: str = "") -> str:  # noqa: ARG002  no LLM is asked
        """Return the name of its column."""
        return voter_name(self.name, self.version, self.model_id)

    def label(self, example: Example, /) -> Judgment:
        """Judge one example."""
        return self.label_many([example])[0]

    @abstractmethod
    def label_many(self, examples: Sequence[Example]) -> list[Judgment]:
        """Judge examples, in their order."""


# What is held against a source must leave it at least one part in this many of the input.
SOURCE_SHARE = 4

# Examples judged at a time: enough to fill batches of like length, and a bound on the memory.
WINDOW = 256


def in_windows(examples: Sequence[Example], judge: Callable[[list[Example]], list[Judgment]]) -> list[Judgment]:
    """Return the judgments in the order of the examples; `judge` sees the examples of a source together."""
    result: dict[int, Judgment] = {}
    for at in _windows(examples):
        result.update(zip(at, judge([examples[i] for i in at]), strict=True))
    return [result[i] for i in range(len(examples))]


def _windows(examples: Sequence[Example]) -> Iterator[list[int]]:
    first: dict[str, int] = {}
    for i, example in enumerate(examples):
        first.setdefault(example.source, i)
    order = sorted(range(len(examples)), key=lambda i: first[examples[i].source])
    for start in range(0, len(order), WINDOW):
        yield order[start : start + WINDOW]


# A part of the source and a part of the claim.
TextPair = tuple[str, str]

# A row for each part of the source, in it a pair for each part of the claim.
PairGrid = list[list[TextPair]]

# Cuts a source into parts of at most so many tokens.
CutAt = Callable[[str, int], tuple[str, ...]]


class PairJudge(NetworkJudge):
    """Sets parts of a claim against parts of its source; a subclass cuts both, and reads the network."""

    def label_many(self, examples: Sequence[Example]) -> list[Judgment]:
        """Judge examples in batches; a pair that several of them share is scored once.

        Returns
        -------
        list of Judgment
            In the order of `examples`. `score` is P(consistent), aggregated; `evidence` holds the parts of the source
            that decided, `rationale` what is supported least. No vote where a text has no words (``abstained``), the
            claim leaves the source less than a quarter of the model's input (``truncated``), or the model gives no
            finite number (``failed``).
        """
        return in_windows(examples, self._judge)

    def _judge(self, examples: list[Example]) -> list[Judgment]:
        cut = lru_cache(maxsize=None)(self._cut_source)
        grids = [self._pairs(example, cut) for example in examples]
        full_grids = (grid for grid in grids if isinstance(grid, list))
        pairs = list(dict.fromkeys(pair for grid in full_grids for row in grid for pair in row))
        values = dict(zip(pairs, self._pair_outputs(pairs), strict=True)) if pairs else {}
        return [self._check_grid(grid, values) if isinstance(grid, list) else self._no_vote(grid) for grid in grids]

    def _pairs(self, example: Example, cut: CutAt) -> PairGrid | Reason:
        claims = self._claim_parts(example.claim)
        if not claims or not example.source.strip():
            return "abstained"
        limit = self.network.max_tokens
        room = limit - self._tokens_beside(claims)
        parts = cut(example.source, room) if room * SOURCE_SHARE >= limit else ()
        return [[(part, claim) for claim in claims] for part in parts] or "truncated"

    def _check_grid(self, grid: PairGrid, scores: Mapping[TextPair, Floats]) -> Judgment:
        values = [[scores[pair] for pair in row] for row in grid]
        if not all(np.isfinite(value).all() for row in values for value in row):
            return self._no_vote("failed")
        return self._verdict(grid, values)

    def _no_vote(self, reason: Reason) -> Judgment:
        return Judgment(vote=ABSTAIN, reason=reason, model=self.model_id)

    def _claim_parts(self, claim: str) -> tuple[str, ...]:
        """Return the parts of a claim: the whole, unless it has no words."""
        return (claim,) if claim.strip() else ()

    @abstractmethod
    def _tokens_beside(self, claims: Sequence[str]) -> int:
        """Return the most tokens of an input that are not the source's."""

    @abstractmethod
    def _cut_source(self, source: str, room: int) -> tuple[str, ...]:
        """Return the parts of a source, each of at most `room` tokens."""

    @abstractmethod
    def _pair_outputs(self, pairs: list[TextPair]) -> list[Floats]:
        """Return the answer of the network to each pair."""

    @abstractmethod
    def _verdict(self, grid: PairGrid, values: list[list[Floats]]) -> Judgment:
        """Return the judgment of one example by the answers to its pairs."""


# Counts the tokens of each of some texts.
Count = Callable[[Sequence[str]], list[int]]


def fitting_spans(text: str, count: Count, budget: int, spans: Sequence[Span] | None = None) -> list[Span]:
    """Return spans of at most `budget` tokens: the sentences of a text, halved where one is longer.

    Parameters
    ----------
    text : str
        The whole text, in which spans are (start, end) in characters.
    count : callable
        Gives the number of tokens of each of several texts.
    budget : int
        At least 1. A single character that is more tokens than this is kept whole.
    spans : sequence of (int, int), optional
        In place of the sentences.

    Examples
    --------
    >>> from deep.integrations.encoders._encoder_judge import fitting_spans
    >>> words = lambda texts: [len(text.split()) for text in texts]
    >>> text = "Rain fell. The wind rose and the river left its bed."
    >>> [text[start:end] for start, end in fitting_spans(text, words, 5)]
    ['Rain fell.', 'The wind rose and the', 'river left its bed.']
    """
    spans = sentence_spans(text) if spans is None else spans
    fitting: list[Span] = []
    for span, length in zip(spans, count([text[start:end] for start, end in spans]), strict=True):
        if length <= budget or span[1] - span[0] == 1:
            fitting.append(span)
        else:
            fitting += fitting_spans(text, count, budget, _halves(text, *span))
    return fitting


def _halves(text: str, start: int, end: int) -> list[Span]:
    """Cut a span at the white space nearest to its middle, or else in the middle."""
    middle = (start + end) // 2
    blanks = [i for i in range(start + 1, end - 1) if text[i].isspace()]
    cut = min(blanks, key=lambda i: abs(i - middle), default=middle)
    left, right = text[start:cut].rstrip(), text[cut:end].lstrip()
    return [(start, start + len(left)), (end - len(right), end)]


def chunk_spans(text: str, count: Count, budget: int) -> list[Span]:
    """Return spans of at most `budget` tokens, each of as many whole sentences in a row as fit.

    Parameters are those of :func:`fitting_spans`.

    Examples
    --------
    >>> from deep.integrations.encoders._encoder_judge import chunk_spans
    >>> words = lambda texts: [len(text.split()) for text in texts]
    >>> text = "Rain fell. It was cold. The river left its bed."
    >>> [text[start:end] for start, end in chunk_spans(text, words, 5)]
    ['Rain fell. It was cold.', 'The river left its bed.']
    """
    spans = fitting_spans(text, count, budget)
    lengths = count([text[start:end] for start, end in spans])
    firsts, used = [0] if spans else [], 0
    for i, length in enumerate(lengths):
        if used and used + length > budget:
            firsts.append(i)
            used = 0
        used += length
    packed = [(spans[first][0], spans[last - 1][1]) for first, last in pairwise([*firsts, len(spans)])]
    # Tokens of a whole can be more than those of its parts, where white space counts.
    return fitting_spans(text, count, budget, packed)


# Names of labels that say that the source supports the claim, as models on the Hub have them, in plain letters.
_CONSISTENT = (
    *("aligned", "consistent", "correct", "entail", "entailed", "entailment", "entails", "factual"),
    *("factuallyconsistent", "faithful", "supported", "supports"),
)

# Names of labels that say the contrary, which a neutral label does not.
_CONTRADICTING = ("contradict", "contradicted", "contradiction", "contradicts", "refuted", "refutes")


@dataclass(frozen=True)
class Head:
    """Turns logits into P(consistent).

    Parameters
    ----------
    index : int
        The label that says "consistent".
    independent : bool
        Whether each logit stands alone (a sigmoid), as with a single one, or all compete (a softmax).
    """

    index: int
    independent: bool

    def probabilities(self, logits: Floats) -> Floats:
        """Return P(consistent) of each row of logits, shape (n_pairs,)."""
        values = expit(logits) if self.independent else softmax(logits, axis=1)
        return np.asarray(values[:, self.index], dtype=np.float64)


def read_head(config: "PretrainedConfig", entailment_label: str | int | None, model_id: str) -> Head:
    """Find the label that says "consistent" in a model's configuration.

    Parameters
    ----------
    config : transformers configuration
        With `id2label`.
    entailment_label : str, int or None
        The label or its number, where the names do not tell.
    model_id : str
        For the error message.

    Raises
    ------
    InputError
        The label cannot be told, or `entailment_label` is not one of the model's.
    """
    labels = [str(config.id2label[i]) for i in range(int(config.num_labels))]
    alone = len(labels) == 1
    independent = alone or config.problem_type == "multi_label_classification"
    if entailment_label is not None:
        return Head(_label_index(labels, entailment_label), independent)
    fitting = [i for i, label in enumerate(labels) if alone or _plain(label) in _CONSISTENT]
    if len(fitting) != 1:
        raise InputError(
            f"`entailment_label` must be given if no label's name shows that it means consistent. Got "
            f"{', '.join(labels)} in {model_id!r}. Pass entailment_label={labels[-1]!r}, for instance."
        )
    return Head(fitting[0], independent)


def contradiction_head(config: "PretrainedConfig", head: Head) -> Head | None:
    """Return the head of the label that says "contradiction" in a model that has another one for "consistent"."""
    labels = [str(config.id2label[i]) for i in range(int(config.num_labels))]
    fitting = [i for i, label in enumerate(labels) if _plain(label) in _CONTRADICTING]
    return Head(fitting[0], head.independent) if len(fitting) == 1 and fitting[0] != head.index else None


def _plain(label: str) -> str:
    return "".join(letter for letter in label.casefold() if letter.isalnum())


def _label_index(labels: list[str], choice: str | int) -> int:
    if isinstance(choice, str) and choice in labels:
        return labels.index(choice)
    number = int(choice) if str(choice).isdecimal() else -1
    if not 0 <= number < len(labels):
        allowed = ", ".join(f"{i} ({label})" for i, label in enumerate(labels))
        raise InputError(f"`entailment_label` must be one of the model's labels: {allowed}. Got {choice!r}.")
    return number

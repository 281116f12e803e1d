"""Direct prompting for hallucinated sentences: one question, answered with a list of them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deep._text import sentence_spans
from deep.experiments.stepwise import read_list, strings
from deep.experiments.tiered._reading import LabelTally, SentenceVerdict, TurnReading
from deep.experiments.tiered._sentence_judge import SentenceJudge
from deep.experiments.tiered._tags import closest, plain
from deep.experiments.tiered._wording import messages_of, wording
from deep.judge import LLMReply, Program, Question
from deep.prompt_pool import Material
from deep.records import Example, Reason

KEY = "hallucinated"

SCHEMA = {
    "type": "object",
    "properties": {KEY: {"type": "array", "items": {"type": "string"}}},
    "required": [KEY],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class ListJudge(SentenceJudge):
    """Judges a reply by asking for the list of its hallucinated sentences, without labels, steps or examples.

    The baseline of the tiered judge, and the form of answer that a fine-tuned detector is trained to give.

    Parameters
    ----------
    samples : int, default=1
        Replies to the question; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence is hallucinated where so many samples list it. Default: the majority.

    Attributes
    ----------
    name : str
        ``listed``.
    version : str
        SHA-256 of all that decides what is asked and how it is read, 64 hexadecimal digits.

    Raises
    ------
    InputError
        A parameter is out of range.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep import Example
    >>> from deep.judge import run_program
    >>> from deep.experiments.tiered import ListJudge
    >>> def ask(question):
    ...     return SimpleNamespace(text='{"hallucinated": ["Snow fell."]}', finish_reason="stop", refusal=None,
    ...                            model="tiny", tokens={})
    >>> run_program(ListJudge().program(Example("It rained.", "It rained. Snow fell.", "1")), ask).evidence
    ('consistent: It rained.', 'hallucinated: Snow fell.')
    """

    samples: int = 1

    @property
    def name(self) -> str:
        """``listed``."""
        return "listed"

    @property
    def _content(self) -> Mapping[str, object]:
        texts = wording()
        return {"reading": 2, "texts": [texts["system"], texts["tasks"]["list"]]}

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return self.samples

    def messages(self, source: str, claim: str) -> list[dict[str, str]]:
        """Return the chat messages that ask about one reply."""
        return messages_of("list", Material(source, claim), {}, (), "")

    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the question about one reply, as a program that ends with a verdict for each sentence."""
        parts = [claim[start:end] for start, end in sentence_spans(claim)] if sentences is None else list(sentences)
        if not parts:
            return TurnReading(())
        parameters = {"temperature": float(self.samples > 1), "max_tokens": 256 + len(claim) // 2}
        messages = self.messages(source, claim)
        replies = yield [
            Question(step="list", messages=messages, schema=SCHEMA, parameters=parameters, sample=sample)
            for sample in range(self.samples)
        ]
        tallies = [LabelTally(self.samples) for _ in parts]
        unaligned: list[str] = []
        for sample, reply in enumerate(replies):
            unaligned += [
                f"list, sample {sample + 1}, {text}" for text in _count(reply, (source, claim), parts, tallies)
            ]
        verdicts = (self._verdict(text, tally) for text, tally in zip(parts, tallies, strict=True))
        return TurnReading(tuple(verdicts), tuple(unaligned), tuple(replies))

    def _verdict(self, text: str, tally: LabelTally) -> SentenceVerdict:
        consistent = tally.passes("left out", "listed", self._threshold)
        reason = tally.reason if consistent is None else None
        return SentenceVerdict(text, consistent=consistent, votes=dict(sorted(tally.labels.items())), reason=reason)


def list_text(sentences: Sequence[str]) -> str:
    """Return the answer that lists some sentences."""
    return json.dumps({KEY: list(sentences)}, ensure_ascii=False)


def _count(
    reply: LLMReply | None, shown: Sequence[str], sentences: Sequence[str], tallies: Sequence[LabelTally]
) -> list[str]:
    """Count one reply about the texts that were shown, and return what it lists that is none of the sentences."""
    items = read_list(reply, KEY, *shown)
    listed = None if isinstance(items, str) else strings(items)
    reason: Reason = items if isinstance(items, str) else "unparsable"
    texts = [plain(sentence) for sentence in sentences]
    found: Counter[int] = Counter()
    unaligned = []
    for item in listed or []:
        position = closest(plain(item), texts)
        if position is None:
            unaligned.append(" ".join(item.split())[:200])
        else:
            found.update({position, *(i for i, text in enumerate(texts) if text and text in plain(item))})
    for i, tally in enumerate(tallies):
        if i in found:
            tally.labels["listed"] += 1
        elif listed is None or unaligned:
            # What could not be found again may have meant any of the others.
            tally.reasons[reason] += 1
        else:
            tally.labels["left out"] += 1
    return unaligned

"""The printed prompt of CogniBench as a judge of sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deep._text import sentence_spans
from deep.experiments.printed._steps import PrintedSteps, load_steps
from deep.experiments.tiered import LabelTally, SentenceJudge, SentenceVerdict, TurnReading, read_tags
from deep.judge import Program, Question
from deep.prompt_pool import Material, clean, why_unusable
from deep.records import Example

STEP = "tag"
LABELS = ("faithful", "hallu", "irrelevant")


@dataclass(frozen=True, kw_only=True)
class PrintedTagJudge(SentenceJudge):
    """Asks one printed prompt, several times, for a tag around each sentence, which decides on it.

    Parameters
    ----------
    printed : PrintedSteps
        With the step ``tag``; :func:`load_tag_judge` reads it from a file.
    samples : int, default=5
        Replies; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence is hallucinated where so many samples say so. Default: the majority.

    Attributes
    ----------
    name : str
        ``printed:`` and the id of the prompt.
    version : str
        SHA-256 of all that decides what is asked and how it is read, 64 hexadecimal digits.
    """

    printed: PrintedSteps

    @property
    def name(self) -> str:
        """``printed:`` and the id of the prompt."""
        return f"printed:{self.printed.id}"

    @property
    def _content(self) -> Mapping[str, object]:
        return {"reading": 1, "prompt": self.printed.hash}

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return self.samples

    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the question about one reply, as a program that ends with a verdict for each sentence."""
        texts = [claim[start:end] for start, end in sentence_spans(claim)] if sentences is None else list(sentences)
        texts = [clean(text, "claim").strip() for text in texts]
        if not texts:
            return TurnReading(())
        claims = " ".join(f"<>{text}</>" for text in texts)
        messages = self.printed.messages(STEP, source=source, claims=claims)
        parameters = {"temperature": float(self.samples > 1), "max_tokens": 512 + len(claims) // 2}
        replies = yield [
            Question(step=STEP, messages=messages, parameters=parameters, sample=sample)
            for sample in range(self.samples)
        ]
        shown = Material(source, claim) if sentences is None else Material(source, " ".join(texts))
        tallies = [LabelTally(self.samples) for _ in texts]
        unaligned: list[str] = []
        for sample, reply in enumerate(replies):
            readable = reply is not None and why_unusable(reply) in (None, "truncated")
            said = read_tags((reply.text or "") if reply and readable else "", texts, LABELS, marks=("",), shown=shown)
            unaligned += [f"{STEP}, sample {sample + 1}, {text}" for text in said.unaligned]
            for tally, label in zip(tallies, said.labels, strict=True):
                if label:
                    tally.labels[label] += 1
                else:
                    tally.reasons[why_unusable(reply) or "unparsable"] += 1
        verdicts = (self._verdict(text, tally) for text, tally in zip(texts, tallies, strict=True))
        return TurnReading(tuple(verdicts), tuple(unaligned), tuple(replies))

    def _verdict(self, text: str, tally: LabelTally) -> SentenceVerdict:
        votes = dict(sorted(tally.labels.items()))
        if 2 * tally.labels["irrelevant"] > self.samples:
            return SentenceVerdict(text, "irrelevant", "irrelevant", votes=votes)
        counts = {"good": tally.labels["faithful"] + tally.labels["irrelevant"], "bad": tally.labels["hallu"]}
        consistent = tally.relabeled(counts).passes("good", "bad", self._threshold)
        verdict = {True: "consistent", False: "hallucinated", None: None}[consistent]
        reason = tally.reason if consistent is None else None
        return SentenceVerdict(text, None, verdict, consistent, votes, reason)


def load_tag_judge(path: str | Path, *, samples: int = 5, threshold: int | None = None) -> PrintedTagJudge:
    """Return the judge of a file that ``deep prompts import --paper cognibench`` wrote.

    Raises
    ------
    InputError
        The file cannot be read, or lacks the step ``tag`` or one of its placeholders.
    """
    printed = load_steps(path, {STEP: ("claims", "source")})
    return PrintedTagJudge(printed=printed, samples=samples, threshold=threshold)

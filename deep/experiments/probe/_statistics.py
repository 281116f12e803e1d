"""The statistics of a benchmark, in the layout of the paper's Table 1."""

from collections.abc import Iterator, Sequence

from deep.evaluate import Row, framed
from deep.experiments.probe._records import TASKS, Sample


@framed
def statistics(samples: Sequence[Sample]) -> Iterator[Row]:
    """Table 1: instances, claims and lengths by task and overall; lengths are in characters.

    A response's hallucination length is that of all its insertions; its mean, its maximum and its mean share of the
    response are over the responses that hold any. `claims` counts those that are hallucinated or truth; unverified
    and mixed ones stand beside them.
    """
    for task in (*TASKS, "overall"):
        chosen = [sample for sample in samples if task in (sample.task, "overall")]
        if chosen:
            yield {"task": task, **dict(_figures(chosen))}


def _figures(samples: Sequence[Sample]) -> Iterator[tuple[str, float | int | None]]:
    labels = [claim.label for sample in samples for claim in sample.claims]
    yield "instances", len(samples)
    yield "claims", labels.count("hallucinated") + labels.count("truth")
    for label in ("hallucinated", "truth", "unverified", "mixed"):
        yield label, labels.count(label)
    lengths = [len(sample.response) for sample in samples]
    added = [sum(end - start for start, end in (i.span for i in sample.insertions)) for sample in samples]
    poisoned = [(n, length) for n, length in zip(added, lengths, strict=True) if n]
    yield "response_length_mean", _mean(lengths)
    yield "response_length_max", max(lengths)
    yield "hallucination_length_mean", _mean([n for n, _ in poisoned])
    yield "hallucination_length_max", max((n for n, _ in poisoned), default=None)
    yield "hallucination_share_of_response", _mean([n / length for n, length in poisoned])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

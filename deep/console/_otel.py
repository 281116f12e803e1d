"""Scores and votes as events of OpenTelemetry, where a command is told to send them."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from deep._entry_points import EVENT, find_entry_points, load_entry_point
from deep.records import Example, Judgment

if TYPE_CHECKING:
    from deep.asking import Scored


class Events(Protocol):
    """Sends an event for each score, and for each judgment of an example."""

    def __call__(self, scored: "Scored", /) -> None:
        """Send the event of a score."""

    def judged(self, example: Example, judgments: Mapping[str, Judgment], /) -> None:
        """Send an event for each judgment of an example."""


def add_otel(parser: argparse.ArgumentParser) -> None:
    """Add ``--otel``."""
    purpose = "send an OpenTelemetry event gen_ai.evaluation.result for each, as OTEL_EXPORTER_OTLP_ENDPOINT says"
    parser.add_argument("--otel", action="store_true", help=purpose)


@contextmanager
def evaluation_events(*, on: bool) -> Iterator[Events | None]:
    """Give the sender of events, and send what is waiting in the end; None where they are not wanted.

    Raises
    ------
    MissingDependencyError
        ``deep-judges[opentelemetry]`` is not installed.
    """
    if not on:
        yield None
        return
    with load_entry_point(find_entry_points(EVENT).usable["opentelemetry"])() as events:
        yield events

"""Scores and votes as events of OpenTelemetry, where a command is told to send them."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deep.integrations.opentelemetry import EvaluationEvents


def add_otel(parser: argparse.ArgumentParser) -> None:
    """Add ``--otel``."""
    what = "send an OpenTelemetry event gen_ai.evaluation.result for each, as OTEL_EXPORTER_OTLP_ENDPOINT says"
    parser.add_argument("--otel", action="store_true", help=what)


@contextmanager
def evaluation_events(*, on: bool) -> Iterator["EvaluationEvents | None"]:
    """Give what emits events, and send what is waiting in the end; None where they are not wanted.

    Raises
    ------
    MissingDependencyError
        ``deep-judges[opentelemetry]`` is not installed.
    """
    if not on:
        yield None
        return
    from deep.integrations.opentelemetry import EvaluationEvents

    with EvaluationEvents() as events:
        yield events

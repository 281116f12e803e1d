"""OpenTelemetry: scores and votes as ``gen_ai.evaluation.result`` events, through the Logs API.

Needs ``deep-judges[opentelemetry]``; docs/integrations/opentelemetry.md has an example. The semantic conventions of
generative AI are in development: names may change.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeAlias

from deep import __version__
from deep.asking import Scored
from deep.exceptions import needs_extra
from deep.integrations.committee import Verdict
from deep.records import ABSTAIN, Example, Judgment

with needs_extra("opentelemetry"):
    from opentelemetry import trace
    from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger_provider
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider as SDKLoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

EVENT = "gen_ai.evaluation.result"
NAME, VALUE, LABEL, EXPLANATION = (
    f"gen_ai.evaluation.{part}" for part in ("name", "score.value", "score.label", "explanation")
)
ERROR = "error.type"

Value = str | float
# The span that is judged: its context, or a traceparent header of W3C; None: the current span.
Parent: TypeAlias = trace.SpanContext | str | None


class EvaluationEvents:
    """Emits an event for each score or vote; a callable, as ``CheckOptions(on_scored=...)`` wants one.

    Parameters
    ----------
    provider : LoggerProvider, optional
        Default: the global one; where none is set, one of its own that sends by OTLP over HTTP to where the
        ``OTEL_EXPORTER_OTLP_*`` variables of the environment say.
    name : str, default='consistency'
        The evaluation's name for scores; votes have their voter's.
    """

    def __init__(self, provider: LoggerProvider | None = None, *, name: str = "consistency") -> None:
        self.name = name
        self._own: SDKLoggerProvider | None = None
        result = get_logger_provider() if provider is None else provider
        if provider is None and not hasattr(result, "force_flush"):
            result = self._own = SDKLoggerProvider(resource=_resource(), shutdown_on_exit=False)
            self._own.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        self._provider = result
        self._logger = result.get_logger("deep", __version__)

    def __call__(self, scored: Scored, parent: Parent = None) -> None:
        """Emit the event of a scored pair: P, the decision, and the judges' votes and words."""
        verdict = Verdict.of(scored)
        result: dict[str, Value] = {NAME: self.name, EXPLANATION: verdict.rationale}
        if verdict.p is not None and verdict.interval is not None:
            result |= {VALUE: verdict.p, LABEL: "consistent" if verdict.decision else "inconsistent"}
            result |= {"deep.p_low": verdict.interval[0], "deep.p_high": verdict.interval[1]}
        elif verdict.status == "error":
            result[ERROR] = "failed"
        else:
            result[LABEL] = "no_vote"
        self._emit(result | _item(scored.example), parent)

    def judged(self, example: Example, judgments: Mapping[str, Judgment], parent: Parent = None) -> None:
        """Emit an event for each judgment of an example: the vote, or why there is none."""
        for voter, judgment in judgments.items():
            self._emit(_vote(voter, judgment) | _item(example), parent)

    def close(self) -> None:
        """Send the events that wait."""
        if self._own is not None:
            self._own.shutdown()
        elif isinstance(self._provider, SDKLoggerProvider):
            self._provider.force_flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _emit(self, attributes: Mapping[str, Value], parent: Parent) -> None:
        severity = SeverityNumber.ERROR if ERROR in attributes else SeverityNumber.INFO
        record = LogRecord(
            event_name=EVENT, severity_number=severity, attributes=dict(attributes), context=_context(parent)
        )
        self._logger.emit(record)


def _resource() -> Resource:
    """Return the sender: the service ``deep``, unless the environment names one."""
    result = Resource.create()
    unnamed = str(result.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service")
    return result.merge(Resource({SERVICE_NAME: "deep"})) if unnamed else result


def _context(parent: Parent) -> Context | None:
    if parent is None:
        return None
    if isinstance(parent, str):
        return TraceContextTextMapPropagator().extract({"traceparent": parent}, context=Context())
    return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())


def _item(example: Example) -> dict[str, Value]:
    """Return which item was judged, by names of deep's own, for the conventions have none."""
    names = {"deep.dataset": example.dataset, "deep.item_id": example.example_id}
    return {name: value for name, value in names.items() if value is not None}


def _vote(voter: str, judgment: Judgment) -> dict[str, Value]:
    """Return the attributes of a vote; an abstention is no error, every other reason is one."""
    result: dict[str, Value] = {NAME: voter}
    if judgment.vote != ABSTAIN:
        result |= {VALUE: float(judgment.vote), LABEL: "consistent" if judgment.vote else "inconsistent"}
    elif judgment.reason == "abstained":
        result[LABEL] = "abstained"
    else:
        result[ERROR] = str(judgment.reason)
    return result | ({EXPLANATION: judgment.rationale} if judgment.rationale else {})

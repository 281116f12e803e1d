"""The circuit breaker: which failures are about the key, the account, the model or the endpoint, and end the run."""

import time
from collections import Counter

from deep.judges import Choice
from deep.llm._errors import CallError, EndpointError, is_dead
from deep.llm._messages import Body, Reply

# A model that refuses this many requests before its first answer is taken to refuse all.
REFUSALS_BEFORE_FIRST_ANSWER = 3

# After this many server errors before a model's first answer a JSON schema is taken to be what breaks its server.
SERVER_ERRORS_BEFORE_FIRST_ANSWER = 3

# A model with this many replies without JSON, and none with it, is taken to ignore a JSON schema.
REPLIES_WITHOUT_JSON = 3

CONSTRAINTS = ("response_format", "structured_outputs")
"""These fields of a request say what its reply may be."""

# After this many requests that were given up with no answer between them the endpoint is taken to be down.
GIVEN_UP_IN_A_ROW = 20


class CircuitBreaker:
    """Counts refusals, failures and replies, by model and for the endpoint.

    Examples
    --------
    >>> from deep.llm import CallError, CircuitBreaker
    >>> breaker, refusal = CircuitBreaker(), CallError("rejected", "no")
    >>> [breaker.is_hopeless("m", refusal) for _ in range(3)]
    [False, False, True]
    >>> breaker.answered("m")
    >>> breaker.is_hopeless("m", refusal)
    False
    """

    def __init__(self) -> None:
        self._live_models: set[str] = set()
        self._refusals: Counter[str] = Counter()
        self._server_errors: Counter[str] = Counter()
        self._with_json: set[str] = set()
        self._without_json: Counter[str] = Counter()
        self._chose: set[str] = set()
        self._given_up = self._unreached = 0
        self._began = time.monotonic()

    def answered(self, model: str) -> None:
        """Count an answer, which closes the circuit: what was given up before it counts no more."""
        self._given_up = 0
        self._live_models.add(model)

    def is_hopeless(self, model: str, error: CallError) -> bool:
        """Count a failure; return whether it is not about the request, but about the key, the account or the model."""
        # A model that has answered once is there: its later refusals are about single requests.
        if error.kind == "fatal" or model in self._live_models:
            return error.kind == "fatal"
        if error.kind == "unreachable" and not self._live_models:
            self._unreached += 1
            return is_dead(self._unreached, time.monotonic() - self._began)
        self._refusals[model] += error.kind == "rejected"
        # Servers have many words for a text that is too long, and the texts that come first may be the longest.
        most = GIVEN_UP_IN_A_ROW if error.may_be_length else REFUSALS_BEFORE_FIRST_ANSWER
        # Before the first answer a 403 is about the key or the account, not about the text.
        return error.kind in ("no_model", "redirected") or error.status == 403 or self._refusals[model] >= most

    def may_be_schema(self, model: str, error: CallError, body: Body) -> bool:
        """Return whether a server error may come from a schema or a choice that the model's server cannot digest."""
        constrained = any(name in body for name in CONSTRAINTS)
        return error.kind == "server_error" and model not in self._live_models and constrained

    def blames_schema(self, model: str) -> bool:
        """Count a server error that may come from a JSON schema; return whether it is the one that proves it."""
        self._server_errors[model] += 1
        return self._server_errors[model] == SERVER_ERRORS_BEFORE_FIRST_ANSWER

    def ignores_schema(self, model: str, reply: Reply) -> bool:
        """Count a reply to a request for JSON; return whether it is the one that shows that the schema is ignored."""
        if reply.text.lstrip().startswith("{"):
            self._with_json.add(model)
        if model in self._with_json or reply.refusal or not reply.text.strip():
            return False
        self._without_json[model] += 1
        return self._without_json[model] == REPLIES_WITHOUT_JSON

    def ignores_choice(self, model: str, choice: Choice, reply: Reply) -> bool:
        """Return whether a complete reply is none of the answers that its model was to choose from."""
        if reply.refusal or not reply.text.strip() or reply.finish_reason not in (None, "stop"):
            return False
        if choice.allows(reply.text):
            self._chose.add(model)
            return False
        return True

    def may_be_choice(self, model: str, error: CallError) -> bool:
        """Return whether a refusal may be of a choice: the model has not kept to one yet."""
        return error.kind == "rejected" and model not in self._chose

    def give_up(self, error: CallError, *, may_pass: bool, at_once: int) -> None:
        """Count a request that was given up, where its failure is one that `may_pass`.

        Raises
        ------
        EndpointError
            So many were given up in a row, and at least as many as are sent `at_once`, that the circuit opens.
        """
        self._given_up += may_pass
        if self._given_up >= max(GIVEN_UP_IN_A_ROW, at_once):
            raise EndpointError(
                f"`base_url` must answer. The last {self._given_up} requests were given up, the last one for: {error}. "
                f"Run the same command again with --retry-failed {error.kind} (`retry_failed`) once it does."
            )

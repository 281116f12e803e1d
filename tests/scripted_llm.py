"""An LLM whose every answer is computed from the request by a Python function, on the same server as the faults.

In a test::

    def answer(asked):
        if "split" in asked.user:
            return {"claims": ["It rained."]}          # sent as JSON
        return Fault("truncated") if "snow" in asked.user else "VERDICT: SUPPORTED"

    with ScriptedLLM(answer) as server:
        ...  # server.url, server.count, server.asked; every option of FaultServer may be given too
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fault_server import ANSWER_FAULTS, FaultServer, digest_of

ERRORS = ("broken_json", "filtered", "server_error")


@dataclass(frozen=True)
class Asked:
    """One request.

    Parameters
    ----------
    body : dict
        As it came.
    times : int
        How often the same body came before: the number of the sample, where requests come one after another
        (``--concurrency 1``) and none is repeated.
    """

    body: dict[str, Any]
    times: int

    @property
    def model(self) -> str:
        """The model that is asked."""
        return str(self.body["model"])

    @property
    def system(self) -> str:
        """All system messages."""
        return "\n".join(message["content"] for message in self.body["messages"] if message["role"] == "system")

    @property
    def user(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])

    @property
    def text(self) -> str:
        """All messages."""
        return "\n".join(str(message["content"]) for message in self.body["messages"])

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of the JSON schema that the reply is to have; empty where there is none."""
        schema = ((self.body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
        return dict(schema.get("properties", {}))


@dataclass(frozen=True)
class Fault:
    """In place of an answer: no_verdict, refused, truncated, filtered, server_error or broken_json.

    A server error or broken JSON comes every time, so that the request fails for good once the attempts are spent.
    """

    name: str

    def __post_init__(self) -> None:
        assert self.name in (*ANSWER_FAULTS, *ERRORS), self.name


Script = Callable[[Asked], "str | dict[str, Any] | list[Any] | Fault"]


class ScriptedLLM(FaultServer):
    """A FaultServer that answers by a script.

    Parameters
    ----------
    script : callable
        Called with an :class:`Asked`; returns the text of the reply, an object to be sent as JSON text, or a
        :class:`Fault`.
    **options : object
        Of :class:`FaultServer`.

    Attributes
    ----------
    asked : list of Asked
        All requests that were answered, in order.
    errors : list of Exception
        What the script raised; checked when the server is left.
    """

    def __init__(self, script: Script, **options: Any) -> None:
        super().__init__(**options)
        self._answer_of = script
        self.asked: list[Asked] = []
        self.errors: list[Exception] = []

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        if self.errors and problem[0] is None:
            raise self.errors[0]

    def _answer(self, body: dict[str, Any], fault: str, authorization: str) -> tuple[int, Any, dict[str, str]]:
        asked = Asked(body, self.requests_of(digest_of(body)) - 1)
        try:
            message = self._answer_of(asked)
        except Exception as error:
            self.errors.append(error)
            message = Fault("filtered")  # which nobody asks again, so that a mistake in a script does not take long
        self.asked.append(asked)
        chosen = message.name if isinstance(message, Fault) and fault == "ok" else fault
        text = "" if isinstance(message, Fault) else message if isinstance(message, str) else json.dumps(message)
        self.reply = lambda _: text
        return super()._answer(body, chosen, authorization)

"""HTTP/1.1 as uvicorn speaks it, for clients that come slowly, by the thousand, or never end."""

from asyncio import TimerHandle, Transport
from collections.abc import Sequence
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from deep.integrations.serve._exchange import WebError, error_body

# States of a client that has not sent the whole of its request.
RECEIVING = (h11.IDLE, h11.SEND_BODY)

# Bytes of a request's first line and headers.
LARGEST_HEAD = 1 << 16

# Seconds for a client that is refused to read so, while what it still sends is dropped.
LINGER = 1.0


class JoinedConnection(h11.Connection):
    """The state of a connection that holds back the head of a response until its body comes: one write, not two.

    To send takes longer than anything else that a small answer takes.
    """

    _head: Sequence[bytes] = ()

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Return the bytes to send for an event, after those held back."""
        data = super().send_with_data_passthrough(event)
        if isinstance(event, h11.Response):
            self._head = data or ()
            return []
        if data is not None:
            data, self._head = [*self._head, *data], ()
        return data


class TimedProtocol(H11Protocol):
    """A connection whose requests must come whole within some time.

    uvicorn waits without end for the rest of a request, so that a few idle clients would hold all connections.

    Parameters
    ----------
    read_timeout : float
        Seconds for a whole request, from its first byte or the connection on, and for a client to read on.
    most : int
        Connections that may be open; one more is answered with 503 and closed.
    **options
        Of uvicorn.
    """

    def __init__(self, *, read_timeout: float, most: int, **options: Any) -> None:
        super().__init__(**options)
        self.conn = JoinedConnection(h11.SERVER, LARGEST_HEAD)
        self._read_timeout, self._most = read_timeout, most
        self._receiving: TimerHandle | None = None
        self._stuck: TimerHandle | None = None
        self._lingering: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin, or refuse where too many connections are open."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # whatever is not sent is on the clock, a few kilobytes too
        if len(self.connections) > self._most:
            self._refuse(WebError(503, "busy", "Too many connections.", headers={"retry-after": "1"}))
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        for timer in (self._receiving, self._stuck, self._lingering):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; the time runs until the request is whole."""
        if self._lingering is None:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        """Go on to the next request, which may have begun."""
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the one shape of errors."""
        self._refuse(WebError(400, "bad_http", msg))

    def pause_writing(self) -> None:
        """Give the client some time to read all that was sent; a connection that is closed waits for that as well."""
        super().pause_writing()
        self._stuck = self.loop.call_later(self._read_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on sending."""
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def _watch(self) -> None:
        """Let the time of a request begin or end."""
        begun = self.conn.their_state in RECEIVING and self.timeout_keep_alive_task is None
        if begun and self._receiving is None:
            self._receiving = self.loop.call_later(self._read_timeout, self._expire)
        elif not begun and self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _expire(self) -> None:
        self._refuse(WebError(408, "slow", f"The request must come within {self._read_timeout:g} s. Got a part of it."))

    def _refuse(self, error: WebError) -> None:
        """Answer with an error where no answer has begun, and close the connection once the client can have read it."""
        if not self.transport.is_closing() and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = error_body(error)
            fields: dict[str, Any] = {"content-type": "application/json", "content-length": str(len(body))}
            headers = list({**fields, "connection": "close", **error.headers}.items())
            for event in (h11.Response(status_code=error.status, headers=headers), h11.Data(body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.write_eof()
            self._lingering = self.loop.call_later(LINGER, self.transport.close)
        else:
            self.transport.close()

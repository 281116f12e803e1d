"""HTTP as the call layer allows it: no redirect is followed, and no reply is larger than a bound."""

import asyncio
import codecs
import json
from contextlib import AsyncExitStack
from typing import Any

import httpx2

from deep.llm._errors import CallError

LARGEST_REPLY = 8 << 20
"""Bytes of a reply, decompressed."""

LARGEST_ERROR = 1 << 16
"""Bytes of an error reply that are read; its beginning says what is wrong."""

SMALL = 1 << 18
"""Bytes up to which replies are read side by side."""

LARGE_AT_ONCE = 2
"""Larger replies that are read at a time, however many requests are in flight."""


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client whose replies are bounded, and which goes nowhere but to the address that it was given.

    Parameters
    ----------
    large : asyncio.Semaphore
        Shared by all clients of an endpoint: who holds it may read a large reply.
    **options
        As of an ``httpx2.AsyncClient``.
    """

    def __init__(self, large: asyncio.Semaphore, **options: Any) -> None:
        super().__init__(**options)
        self._large = large

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request once; what is streamed is bounded by whoever reads it, save errors.

        Raises
        ------
        CallError
            Of kind ``broken``: the reply is too large.
        """
        response = await super().send(request, stream=True, **{**options, "follow_redirects": False})
        if stream and response.is_success:
            return response
        try:
            content = await self._read(response)
        finally:
            await response.aclose()
        kind = response.headers.get("content-type", "").partition(";")[0]
        kept = [(name, value) for name, value in response.headers.multi_items() if not name.startswith("content-")]
        headers = [*kept, ("content-type", kind)]  # without a character set: that of JSON is known
        read = httpx2.Response(response.status_code, headers=headers, content=content, request=request)
        read.encoding = "utf-8"
        return read

    async def _read(self, response: httpx2.Response) -> bytes:
        """Return the body as UTF-8; that of an error may be cut."""
        parts, size = list[bytes](), 0
        most = LARGEST_REPLY if response.is_success else LARGEST_ERROR
        async with AsyncExitStack() as waiting:
            async for part in response.aiter_bytes():
                if size <= SMALL < size + len(part):
                    await waiting.enter_async_context(self._large)
                parts.append(part)
                size += len(part)
                if size > most:
                    break
            if size > most and response.is_success:
                raise CallError("broken", f"the reply has more than {LARGEST_REPLY:,} bytes")
            return _as_utf8(b"".join(parts)[:most])


def _as_utf8(content: bytes) -> bytes:
    """Return JSON of any Unicode encoding as UTF-8, whatever character set its header names."""
    encoding = json.detect_encoding(content)
    if encoding == "utf-8":
        return content
    return content.removeprefix(codecs.BOM_UTF8) if encoding == "utf-8-sig" else _recoded(content, encoding)


def _recoded(content: bytes, encoding: str) -> bytes:
    return content.decode(encoding, errors="replace").encode(errors="replace")

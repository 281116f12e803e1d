"""Batch files without sending: shards that any engine of batches runs, and a ledger that knows what is in them."""

import asyncio
import os
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from deep.exceptions import InputError
from deep.llm import _batch_table as table
from deep.llm._batch_table import Batch
from deep.llm._budget import worst_case
from deep.llm._caller import Session
from deep.llm._file_results import custom_id
from deep.llm._lease import Job
from deep.llm._request import Request, json_text
from deep.llm._writer import Written

SHARD_REQUESTS = 50_000
SHARD_BYTES = 190 * 1024**2
"""The limits of one file where engines have some."""

CHUNK = 500
PART = ".part"
"""The ending of a shard that is not complete."""


@dataclass(slots=True)
class _Shard:
    """A file of requests to one LLM, in the making."""

    batch_id: str
    path: Path
    file: BinaryIO
    size: int = 0
    n_bytes: int = 0

    @property
    def part(self) -> Path:
        return self.path.with_name(self.path.name + PART)


@dataclass(eq=False)
class BatchExporter(Session):
    """Writes requests to OpenAI batch files, one LLM a file, and enters them in the ledger as sent.

    A shard has its name once the ledger knows all that is in it; a run that dies before leaves a ``.part`` file whose
    requests the next run takes back.

    Parameters
    ----------
    ledger, client, parse, terms, gate, tally
        As of a session; nothing is sent.
    endpoint : str
        The endpoint's name.
    folder : Path
    most_requests, most_bytes : int
        Of one shard.

    Attributes
    ----------
    shards : list of Path
        Those that were written.
    exported, waiting : int
        Requests that were written now, and those that were in files, or being asked, already.
    stopped : bool
        Whether the budget has no room for more.
    """

    endpoint: str
    folder: Path
    most_requests: int = SHARD_REQUESTS
    most_bytes: int = SHARD_BYTES
    shards: list[Path] = field(default_factory=list, init=False)
    exported: int = field(default=0, init=False)
    waiting: int = field(default=0, init=False)
    stopped: bool = field(default=False, init=False)
    _making: dict[str, _Shard] = field(default_factory=dict, init=False)

    async def run(self, requests: Iterable[Request]) -> None:
        """Write whatever is to be asked.

        Parameters
        ----------
        requests : iterable of Request
            Read lazily; those of one document stay together.

        Raises
        ------
        InputError
            A file cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        await self._mend()
        stream = iter(requests)
        while not self.stopped and (chunk := list(islice(stream, CHUNK))):
            lease = await self.ledger.lease(chunk)
            for request, row in lease.settled:
                self.tally.find(request.voter, row)
            self.tally.found += len(lease.repeated)
            self.waiting += len(lease.elsewhere)
            written = [done for job in lease.jobs if (done := await self._add(job)) is not None]
            await asyncio.gather(*written)
        for llm in list(self._making):
            await self._close(llm)

    async def _mend(self) -> None:
        """Name the shards that the ledger knows, and take back the requests of those that it does not."""
        for name, state in await self.ledger.call(table.mend_exports, endpoint=self.endpoint, run=self.ledger.run):
            final = self.folder / name
            part = final.with_name(final.name + PART)
            if part.exists():
                part.rename(final) if state == "exported" else part.unlink()

    async def _add(self, job: Job) -> Written | None:
        """Add a request to the shard of its LLM; None where the budget has no room for it."""
        body = self.body_of(job.request)
        text = job.text if body is job.request.body else json_text(body)
        worst = worst_case(self.terms.prices, body, text)
        if self.stopped or not self.terms.budget.fits(worst, job.request.model):
            self.stopped = True
            return None
        await self.terms.budget.admit(worst, job.request.model)
        line = {"custom_id": custom_id(job.key, job.number), "method": "POST", "url": "/v1/chat/completions"}
        raw = json_text({**line, "body": body}).encode() + b"\n"
        shard = await self._shard(job.request.model, len(raw))
        shard.file.write(raw)
        shard.size += 1
        shard.n_bytes += len(raw)
        self.exported += 1
        changed = None if body is job.request.body else text
        return self.ledger.start(job, changed_body=changed, worst_case=worst, batch=shard.batch_id)

    async def _shard(self, llm: str, more: int) -> _Shard:
        """Return the shard of an LLM that has room for so many bytes more."""
        shard = self._making.get(llm)
        if shard is not None and (shard.size >= self.most_requests or shard.n_bytes + more > self.most_bytes):
            await self._close(llm)
            shard = None
        if shard is None:
            batch_id = uuid.uuid4().hex
            name = f"{re.sub(r'[^A-Za-z0-9]+', '-', llm).strip('-')[:60] or 'llm'}-{len(self.shards) + 1:05d}"
            path = self.folder / f"{name}-{batch_id[:12]}.jsonl"
            entry = Batch(batch_id, path.name, 0, "exporting")
            await self.ledger.call(table.add_batch, entry, self.endpoint, self.ledger.run)
            shard = self._making[llm] = _Shard(batch_id, path, _opened(path.with_name(path.name + PART)))
        return shard

    async def _close(self, llm: str) -> None:
        """Bring a shard to the disk, then to the ledger, and then to its name."""
        shard = self._making.pop(llm)
        shard.file.flush()
        os.fsync(shard.file.fileno())
        shard.file.close()
        await self.ledger.call(table.set_batch, batch_id=shard.batch_id, size=shard.size, state="exported")
        shard.part.rename(shard.path)
        self.shards.append(shard.path)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise InputError(
            f"`batch_out` must be a folder that can be written to. Got {str(path.parent)!r}: {error.strerror}."
        ) from None

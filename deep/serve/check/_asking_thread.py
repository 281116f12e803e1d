"""The thread in which LLMs are asked: its event loop is not the server's, so that neither waits for the other."""

import asyncio
from threading import Thread

from deep.asking import LiveAsker
from deep.records import Example


class AskingThread:
    """Runs an asker in an event loop of its own.

    Parameters
    ----------
    asker : LiveAsker
    """

    def __init__(self, asker: LiveAsker) -> None:
        self._asker = asker
        self._loop = asyncio.new_event_loop()
        self._turns = set[asyncio.Task[bool]]()
        self._thread = Thread(target=self._loop.run_forever, name="deep-asking", daemon=True)
        self._thread.start()

    async def open(self) -> None:
        """Open the ledger."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._asker.open(), self._loop))

    async def ask(self, example: Example) -> bool:
        """Ask what the ledger lacks about an example; see :meth:`LiveAsker.ask`."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._ask(example), self._loop))

    async def _ask(self, example: Example) -> bool:
        turn = asyncio.current_task()
        assert turn is not None  # in a coroutine
        self._turns.add(turn)
        try:
            return await self._asker.ask(example)
        finally:
            self._turns.discard(turn)

    def close(self) -> None:
        """End what is still asked, which the ledger then keeps as in doubt; close it, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        turns = list(self._turns)
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)
        await self._asker.close()

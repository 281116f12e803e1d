"""Answers to pairs that were asked lately, bounded by their bytes."""

from collections import OrderedDict

OVERHEAD = 256
"""Bytes that an entry takes besides its answer."""


class AnswerCache:
    """A least-recently-used cache.

    Parameters
    ----------
    most : int
        Bytes of all answers together; 0 keeps none.

    Examples
    --------
    >>> from deep.serve.check._cache import AnswerCache
    >>> cache = AnswerCache(1000)
    >>> for name in (b"a", b"b", b"c"):
    ...     cache.put(name, b"?" * 100)
    >>> cache.get(b"a") is None, cache.get(b"c") is None, len(cache)
    (True, False, 2)
    """

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: bytes) -> bytes | None:
        """Return an answer, if it is there."""
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer, in place of those that were not asked for longest."""
        if len(answer) + OVERHEAD > self._most or key in self._answers:
            return
        self._answers[key] = answer
        self._size += len(answer) + OVERHEAD
        while self._size > self._most:
            self._size -= len(self._answers.popitem(last=False)[1]) + OVERHEAD

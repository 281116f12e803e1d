"""How the processor time of a step grows with what it is given, which no slow or busy machine changes."""

import time


def growth(step, small, large):
    """Return how many times the processor time of `step(small)` the one of `step(large)` is.

    A time below 10 ms counts as that, for nobody can tell it from none.
    """
    seconds = []
    for size in (small, large):
        started = time.process_time()
        step(size)
        seconds.append(time.process_time() - started)
    return seconds[1] / max(seconds[0], 0.01)

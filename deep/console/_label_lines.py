"""Lines that `deep label` prints as its page begins and ends."""

from collections.abc import Iterator

from deep.console._output import Results


def label_lines(found: Results, *, told: str) -> Iterator[str]:
    """Yield lines on what is to be labeled; `told` says what the start found in the log that should not be there."""
    if told:
        yield f"{found['files']['log']}: {told}"
    yield from ([found["problem"]] if found["problem"] else [])
    done = _counted(found["complete"], "of them is", "of them are")
    yield f"{found['dataset']}: {_counted(found['items'], 'item', 'items')} to label, {done} done"
    yield f"labels: {found['files']['labels']}, written after each one"


def labeled_lines(found: Results) -> Iterator[str]:
    """Yield lines on the labels that there are, and their files."""
    by = ", ".join(f"{who} {n}" for who, n in found["people"].items()) or "nobody"
    yield f"{found['complete']} of {found['items']} items are done; labels by {by}"
    if found["ties"]:
        yield f"  on {_counted(found['ties'], 'item', 'items')} people are tied: a tie is no label"
    if found["after_reveal"]:
        seen = _counted(found["after_reveal"], "label was", "labels were")
        yield f"  {seen} given after a look at the votes; the annotations mark them"
    yield from ([f"  {found['problem']}"] if found["problem"] else [])
    yield f"labels of {_counted(found['labels'], 'item', 'items')}: {found['files']['labels']}"
    yield from (f"{name}: {found['files'][name]}" for name in ("annotations", "log"))


def _counted(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"

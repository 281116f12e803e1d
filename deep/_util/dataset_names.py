"""Names of datasets: their spellings elsewhere, short names, and the families they belong to."""

import re
from collections.abc import Callable, Iterable

from deep.exceptions import InputError

_SPELLINGS = {
    "aggrefact-cnn-dm": "aggrefact-cnn",
    "aggrefact-cnn-dm-ftsota": "aggrefact-cnn",
    "aggrefact-cnn-ftsota": "aggrefact-cnn",
    "aggrefact-xsum-ftsota": "aggrefact-xsum",
    "halueval-summ": "halueval-summarization",
    "tofueval-medias": "tofueval-mediasum",
    "tofueval-mediasum-summary-level": "tofueval-mediasum",
    "tofueval-meetb": "tofueval-meetingbank",
    "tofueval-meetingbank-summary-level": "tofueval-meetingbank",
}
"""Names that the same dataset has elsewhere: the LLM-AggreFact benchmark, the paper's tables."""

_SHORT_NAMES = {
    "aggrefact": "aggrefact-xsum",
    "cnn": "aggrefact-cnn",
    "halueval": "halueval-summarization",
    "mediasum": "tofueval-mediasum",
    "meetingbank": "tofueval-meetingbank",
    "xsum": "aggrefact-xsum",
}
"""Names that people type. `aggrefact` is the set that the DEEP paper tests on, also where its CNN sibling is there."""

_FAMILIES = {
    "aggrefact-cnn": "aggrefact",
    "aggrefact-xsum": "aggrefact",
    "halueval-dialogue": "halueval",
    "halueval-qa": "halueval",
    "halueval-summarization": "halueval",
    "tofueval-mediasum": "tofueval",
    "tofueval-meetingbank": "tofueval",
}


def canonical_name(name: str) -> str:
    """Return the registered spelling of a dataset's name, in lower case with hyphens."""
    plain = re.sub(r"[\s_/.-]+", "-", name.strip().casefold())
    return _SPELLINGS.get(plain, plain)


def family_of(dataset: str) -> str:
    """Return the family that a dataset belongs to: datasets of one benchmark, made in one way.

    Parameters
    ----------
    dataset : str
        In any of its spellings.

    Returns
    -------
    str
        The dataset's own name where no family is registered.

    Examples
    --------
    >>> from deep.datasets import family_of
    >>> family_of("tofueval-mediasum"), family_of("TofuEval-MeetB"), family_of("ragtruth")
    ('tofueval', 'tofueval', 'ragtruth')
    """
    return _FAMILIES.get(canonical_name(dataset), dataset)


def resolve_dataset(name: str, known: Iterable[str], *, param: str = "dataset") -> str:
    """Return the one of `known` that `name` means.

    Tried in turn: the very name, the name in another case or spelling, a registered short name, a
    beginning that only one name has, a part that only one name has.

    Parameters
    ----------
    name : str
        As typed.
    known : iterable of str
        The datasets that are there.
    param : str
        What to call the parameter in an error.

    Returns
    -------
    str
        A member of `known`, as spelled there.

    Raises
    ------
    InputError
        Nothing matches, or more than one does; the message lists the names, sorted.

    Examples
    --------
    >>> from deep.datasets import resolve_dataset
    >>> resolve_dataset("aggrefact", ["AggreFact-CNN", "AggreFact-XSum", "wice"])
    'AggreFact-XSum'
    >>> resolve_dataset("wi", ["AggreFact-CNN", "AggreFact-XSum", "wice"])
    'wice'
    """
    names = sorted(set(known))
    for matches in _readings(name):
        found = [candidate for candidate in names if matches(candidate)]
        if len(found) == 1:
            return found[0]
        if found:
            options = ", ".join(found)
            raise InputError(f"`{param}` must name one dataset. Got {name!r}, which could be any of {options}.")
    raise InputError(f"`{param}` must be one of {', '.join(names)}. Got {name!r}.")


def _readings(name: str) -> list[Callable[[str], bool]]:
    """Return the ways to read a name, the strictest first."""
    plain = canonical_name(name)
    short = _SHORT_NAMES.get(plain, plain)
    letters: list[Callable[[str], bool]] = [
        lambda candidate: candidate == name,
        lambda candidate: candidate.casefold() == name.casefold(),
    ]
    if not plain.strip("-"):
        return letters
    return [
        *letters,
        lambda candidate: canonical_name(candidate) == plain,
        lambda candidate: canonical_name(candidate) == short,
        lambda candidate: canonical_name(candidate).startswith(plain),
        lambda candidate: plain in canonical_name(candidate),
    ]

"""Labeled examples for prompts to show, read from a file of examples or of votes."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from deep.datasets import family_of, read_examples, read_labels, read_texts, table_columns
from deep.exceptions import InputError
from deep.prompt_pool import FewShot
from deep.records import Example

_PARAM = re.compile(r"^`\w+`")
"""The parameter that an error of the readers names; a user of this one knows only `few_shot`."""


def read_few_shot(path: str | Path, shots: int = 4, *, examples: str | Path | None = None) -> FewShot:
    r"""Read labeled examples for prompts to show.

    Parameters
    ----------
    path : str or Path
        A benchmark or a file of examples with the columns source, claim and label; or a table of votes, or of labels
        alone, whose texts are those of the examples that it remembers or that `examples` names.
    shots : int, default=4
        How many of them a prompt shows; see :class:`deep.prompt_pool.FewShot`.
    examples : str or Path, optional
        A benchmark or a file of examples in which the items of a table of votes are found.

    Raises
    ------
    InputError
        The file cannot be read, or has too few labeled examples whose texts are known.

    Examples
    --------
    >>> import tempfile
    >>> from deep import Example
    >>> from deep.asking import read_few_shot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "old.csv")
    ...     _ = path.write_text("source,claim,label\nIt rained.,It was wet.,1\nAnn won.,Bob won.,0\n")
    ...     chosen = read_few_shot(path, 2).choose(Example("It hailed.", "Ice fell.", "1", dataset="new"))
    >>> sorted(shot.claim for shot in chosen)
    ['Bob won.', 'It was wet.']
    """
    try:
        known = tuple(_of_votes(path, examples) if _is_table(Path(path)) else read_examples(path))
    except InputError as error:
        raise InputError(_PARAM.sub("`few_shot`", str(error))) from None
    return FewShot(known, shots, family_of)


def _is_table(path: Path) -> bool:
    """Return whether a file has items and labels without their texts."""
    if not path.name.lower().endswith((".csv", ".csv.gz", ".parquet")) or not path.is_file():
        return False
    return {"source", "item_id"} & set(table_columns(path)) == {"item_id"}


def _of_votes(path: str | Path, examples: str | Path | None) -> Iterable[Example]:
    labels = read_labels(path)
    known = dict(zip(zip(labels.datasets, labels.example_ids, strict=True), labels.labels.tolist(), strict=True))
    remembered = read_texts(path, list(known)).examples
    found = {**(read_texts(path, list(known), examples=examples).examples if examples else {}), **remembered}
    for item, example in found.items():
        yield replace(example, label=known[item])

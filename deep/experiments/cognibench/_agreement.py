"""Agreement of annotators under each of several protocols, and of the protocols with one another."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep._files import JsonObject
from deep.datasets import rating_table, read_annotation_rows
from deep.exceptions import InputError
from deep.features import agreement_interval, cohen_kappa, krippendorff_alpha, pairwise_agreement

COLUMNS = ("item_id", "protocol", "annotator", "label")

MOST = {"protocol": 100, "label": 1_000}
"""Different values that are compared with one another; where there are more, a column holds something else."""

Ratings = npt.NDArray[np.int64]


def read_annotations(path: Path) -> pd.DataFrame:
    """Return a CSV file of annotations: a label for each item, protocol and annotator; rows without one left out.

    Raises
    ------
    InputError
        The file cannot be read, a column is not there, a cell is empty, a row comes twice, or there is no label.
    """
    _, rows = read_annotation_rows(path, COLUMNS[:3])
    frame = pd.DataFrame([{name: row[name].strip() for name in COLUMNS} for row in rows])
    frame = frame[frame["label"] != ""]
    if frame.empty:
        raise InputError(f"`label` must be given at least once. Got none in {str(path)!r}.")
    for name, most in MOST.items():
        if (n := frame[name].nunique()) > most:
            raise InputError(f"`{name}` must have at most {most:,} different values. Got {n:,} in {str(path)!r}.")
    return frame


def agreement_tables(frame: pd.DataFrame, *, n_boot: int = 2000, random_state: int = 0) -> dict[str, pd.DataFrame]:
    """Return the agreement within each protocol, and between each two.

    Within: the share of pairs of annotators that give an item the same label, as Table 1 of the paper has it, and
    Krippendorff's alpha with its interval. Between: the same share of items, and Cohen's kappa, of the commonest
    label that each protocol gives; an item without a commonest one is left out.
    """
    codes = {label: code for code, label in enumerate(sorted(set(frame["label"])))}
    within, majority = [], {}
    for protocol, part in frame.groupby("protocol", sort=True):
        ratings = _ratings(part, codes)
        low, high = agreement_interval(krippendorff_alpha, ratings, n_boot=n_boot, random_state=random_state)
        within.append(
            {
                "protocol": protocol,
                "items": len(ratings),
                "annotators": ratings.shape[1],
                "agreement": pairwise_agreement(ratings),
                "alpha": krippendorff_alpha(ratings),
                "alpha low": low,
                "alpha high": high,
            }
        )
        majority[str(protocol)] = {
            str(item): _commonest(list(labels)) for item, labels in part.groupby("item_id")["label"]
        }
    between = [_between(a, b, majority[a], majority[b], codes) for a, b in combinations(majority, 2)]
    return {"within": pd.DataFrame(within), "between": pd.DataFrame(between)}


def _ratings(part: pd.DataFrame, codes: dict[str, int]) -> Ratings:
    """Return the codes of labels, of shape (n_items, n_annotators); -1 where there is none."""
    items, annotators = (sorted(set(part[name])) for name in ("item_id", "annotator"))
    marks = zip(part["item_id"], part["annotator"], map(codes.__getitem__, part["label"]), strict=True)
    return rating_table(marks, items, annotators)


def _commonest(labels: Sequence[str]) -> str | None:
    (first, n), *others = Counter(labels).most_common(2)
    return None if others and others[0][1] == n else first


def _between(a: str, b: str, of_a: JsonObject, of_b: JsonObject, codes: dict[str, int]) -> JsonObject:
    items = [item for item in of_a if of_a[item] is not None and of_b.get(item) is not None]
    both = np.array([[codes[of_a[item]], codes[of_b[item]]] for item in items], dtype=np.int64).reshape(-1, 2)
    same = float((both[:, 0] == both[:, 1]).mean()) if items else float("nan")
    kappa = cohen_kappa(both) if items else float("nan")
    return {"protocols": f"{a} / {b}", "items": len(items), "agreement": same, "kappa": kappa}

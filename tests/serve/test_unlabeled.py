"""The invented claims without labels: as many as promised, each one by itself, and both kinds."""

import csv
import re
from collections import Counter

from tests.serve.served import UNLABELED
from tests.serve.truth import CONSISTENT


def rows():
    """Return the rows of the file."""
    with UNLABELED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_two_hundred_claims_on_forty_texts_without_labels():
    """Five on each, none twice; a text has two to six sentences."""
    found = rows()
    assert list(found[0]) == ["dataset", "example_id", "source", "claim", "document_id"]
    assert Counter(row["document_id"] for row in found).most_common()[-1][1] == 5
    assert len({row["source"] for row in found}) == len({row["document_id"] for row in found}) == 40
    assert len({row["claim"] for row in found}) == len({row["example_id"] for row in found}) == len(found) == 200
    assert {len(re.findall(r"(?<!\bSt)[.!?]”?(?= |$)", row["source"])) for row in found} <= set(range(2, 7))


def test_a_reader_can_tell_which_are_consistent():
    """About half of them; every text has both kinds."""
    found = rows()
    assert len(CONSISTENT) == 93
    assert {row["example_id"] for row in found} >= CONSISTENT
    consistent = Counter(row["document_id"] for row in found if row["example_id"] in CONSISTENT)
    assert set(consistent.values()) == {2, 3}
    assert len(consistent) == 40

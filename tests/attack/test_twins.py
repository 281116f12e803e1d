"""Names that look the same and differ: refused in one line, or one item where tables are joined; never two."""

import numpy as np
import pytest

from deep import VoteMatrix
from deep._util.names import visible_form
from deep.datasets import read_examples, read_votes
from deep.exceptions import InputError

TWINS = {
    "composed": ("caf\u00e9", "cafe\u0301"),
    "blank behind": ("news", "news "),
    "blank before": ("news", " news"),
    "two blanks": ("the news", "the  news"),
    "no-break space": ("the news", "the\u00a0news"),
    "joiner": ("news", "ne\u200dws"),
    "grapheme joiner": ("news", "ne\u034fws"),
    "filler": ("news", "news\u3164"),
}


@pytest.fixture(params=TWINS)
def twins(request):
    """Return two names that look the same."""
    one, other = TWINS[request.param]
    assert one != other
    assert visible_form(one) == visible_form(other)
    return one, other


def table(path, head, *rows):
    """Write a CSV file, and return its path."""
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_in_one_table(tmp_path, twins):
    """Voters, datasets and items."""
    one, other = twins
    tables = [
        ("voters", f"dataset,item_id,label,{one},{other}", "d,1,1,1,0"),
        ("datasets", "dataset,item_id,label,v", f"{one},1,1,1", f"{other},1,1,0"),
        ("items", "dataset,item_id,label,v", f"d,{one},1,1", f"d,{other},0,0"),
    ]
    for name, *lines in tables:
        with pytest.raises(InputError, match=r"must have names that look different\. Got '.*' and '.*'\. Spell equal"):
            read_votes(table(tmp_path / f"{name}.csv", *lines))


def written(folder, pair):
    """Write two tables, and return their paths."""
    return [table(folder / f"{n}.csv", *lines) for n, lines in enumerate(pair)]


def test_across_tables(tmp_path, twins):
    """What one file calls a judge, a dataset or an item, and another file calls otherwise."""
    one, other = twins
    head = "dataset,item_id,label"
    differ, labels = "must have names that look different", "`label` must be the same in all files"
    tables = [
        ((f"{head},v", f"d,{one},1,1"), (f"{head},w", f"d,{other},0,0"), labels),
        ((f"{head},v", f"{one},a,1,1"), (f"{head},w", f"{other},a,0,0"), labels),
        ((f"{head},v", f"d,{one},1,1"), (f"{head},v", f"d,{other},1,0"), "must give each voter once for an item"),
        ((f"{head},v", f"d,{one},1,1"), (f"{head},w", f"d,{other},1,0", f"d,{one},1,1"), differ),
        ((f"{head},v", f"{one},a,1,1"), (f"{head},v", f"{other},b,0,0"), differ),
        ((f"{head},{one}", "d,a,1,1"), (f"{head},{other}", "e,b,0,0"), differ),
    ]
    for *pair, message in tables:
        with pytest.raises(InputError, match=message) as caught:
            read_votes(written(tmp_path, pair))
        assert "\n" not in str(caught.value)


def test_one_item_across_tables(tmp_path, twins):
    """Where nothing contradicts it, an item that two files of different judges write otherwise is one, never two."""
    one, other = twins
    head = "dataset,item_id,label"
    tables = [
        ((f"{head},v", f"d,{one},1,1"), (f"{head},w", f"d,{other},1,0")),
        ((f"{head},v", f"{one},a,1,1"), (f"{head},w", f"{other},a,1,0")),
        ((f"{head},v", f"{one},{one},1,1"), (f"{head},w", f"{other},{other},1,0")),
    ]
    for pair in tables:
        votes = read_votes(written(tmp_path, pair))
        assert (votes.voter_names, votes.votes.tolist(), votes.labels.tolist()) == (("v", "w"), [[1, 0]], [1])
        assert {votes.item_ids[0], votes.datasets[0]} <= {one, "a", "d"}


def test_among_examples(tmp_path, twins):
    """Ids of one dataset, and the names of datasets where they hold the same id."""
    one, other = twins
    for rows in ([f"a,b,{one},d", f"a,c,{other},d"], [f"a,b,1,{one}", f"a,c,1,{other}"]):
        path = table(tmp_path / "news.csv", "source,claim,example_id,dataset", *rows)
        with pytest.raises(InputError, match=r"must differ in what can be seen|must be unique within"):
            read_examples(path).check()


def test_in_a_matrix(twins):
    """Made in Python."""
    votes = np.ones((2, 1), dtype=np.int8)
    for ids, datasets in ((twins, ["d", "d"]), (["1", "2"], twins)):
        with pytest.raises(InputError, match="must have names that look different"):
            VoteMatrix(votes, ids, ["v"], datasets, [1, 0])
    with pytest.raises(InputError, match="`voter_names` must have names that look different"):
        VoteMatrix(votes.T, ["1"], twins, ["d"], [1])


def test_names_that_can_be_told_apart_stay(tmp_path):
    """Letters of another case are another name, as ids often need; so is an item of another dataset."""
    rows = ["d,a1,1,1,0", "d,A1,0,0,0", "d,\u00e9,0,0,0", "e,e\u0301,0,0,0"]
    votes = read_votes(table(tmp_path / "v.csv", "dataset,item_id,label,judge,Judge", *rows))
    assert votes.shape == (4, 2)


def test_one_column_in_two_files_and_labels_that_differ(tmp_path):
    """Both are refused, and the places are named."""
    one = table(tmp_path / "one.csv", "dataset,item_id,label,v", "d,a,1,1")
    for head, row, message in (
        ("v", "d,a,1,0", "each voter once for an item"),
        ("w", "d,a,0,0", "the same in all files"),
    ):
        with pytest.raises(InputError, match=message):
            read_votes([one, table(tmp_path / "two.csv", f"dataset,item_id,label,{head}", row)])

"""The scorer of one file gives what the model gives, and runs on the standard library alone."""

import ast
import json
import subprocess
import sys

import numpy as np
import pytest

from deep.exceptions import InputError
from deep.integrations.python_program import export_python
from deep.model import fit
from deep.model.file._table import MAX_TABLE_VOTERS
from deep.records import VoteMatrix
from tests.model.file.models import MAKERS, model_of, with_labels
from tests.model.fitted import small_votes

NOT_PYTHON = {"chain of more voters than a table has", "stack with scores"}
WRITTEN = sorted(set(MAKERS) - NOT_PYTHON)


def wide_votes(datasets=("a", "b", "c")):
    """Return votes of more judges than a table has."""
    return small_votes(datasets, n_voters=12)


WIDE = {
    "adapted with labels": lambda: fit(
        with_labels(wide_votes(), (wide_votes().datasets != "c") | (np.arange(360) % 120 < 20)), target="c"
    ),
    "average of two": lambda: fit(wide_votes(("a", "b"))),
    "own labels": lambda: fit(with_labels(wide_votes(("a",)), np.arange(120) < 50)),
    "votes": lambda: fit(with_labels(wide_votes(("a",)), np.zeros(120, dtype=bool))),
}


def written(model, folder):
    """Return the file of a model."""
    export_python(model, folder / "judge.py")
    return folder / "judge.py"


def run(path, text):
    """Run a file as a program without site packages."""
    given = text if isinstance(text, bytes) else text.encode()
    return subprocess.run([sys.executable, "-I", "-S", str(path)], input=given, capture_output=True, check=False)


def by_file(model, path, patterns):
    """Return what the file gives rows of votes, by name; no vote is null or left out."""
    lines = []
    for i, row in enumerate(patterns.tolist()):
        votes = {name: None if vote < 0 else vote for name, vote in zip(model.voter_names, row, strict=True)}
        lines.append(json.dumps({name: vote for name, vote in votes.items() if vote is not None or i % 2}))
    done = run(path, "\n".join(lines))
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def check_same(model, folder, n):
    """Hold random patterns against the model: to the last bit where it is a table."""
    patterns = np.random.default_rng(n).integers(-1, 2, (n, len(model.voters)), dtype=np.int8)
    found = by_file(model, written(model, folder), patterns)
    p, bounds = model.score(patterns, streamed=True), model.intervals(patterns, streamed=True)
    given = np.column_stack([found["p_consistent"], found["p_low"], found["p_high"]])
    most = 0.0 if len(model.voters) <= MAX_TABLE_VOTERS else 1e-12
    np.testing.assert_allclose(given, np.column_stack([p, bounds]), rtol=0, atol=most)
    assert np.array_equal(found["n_votes"], (patterns >= 0).sum(axis=1))
    rows = model.scores_of(patterns, streamed=True).records()
    for name in ("decision", "sure", "threshold"):
        assert found[name].tolist() == [row[name] for row in rows]
    assert {0, 1} <= set(found["decision"].tolist())


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_file_gives_what_the_model_gives(kind, tmp_path):
    """P, interval and decision of random votes."""
    check_same(model_of(kind), tmp_path, 400)


@pytest.mark.parametrize("kind", sorted(WIDE))
def test_models_of_many_voters_are_sums(kind, tmp_path):
    """All of them but chains."""
    check_same(WIDE[kind](), tmp_path, 400)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITTEN)
def test_hundred_thousand_patterns(kind, tmp_path):
    """Of each model."""
    check_same(model_of(kind), tmp_path, 100_000)


@pytest.mark.parametrize("kind", ["chain", "stack of more voters than a table has"])
def test_it_is_python_3_9_that_imports_the_standard_library(kind, tmp_path):
    """And says what the model is."""
    tree = ast.parse(written(model_of(kind), tmp_path).read_text(encoding="utf-8"), feature_version=(3, 9))
    names = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    assert names <= {"json", "math", "os", "sys"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    given = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    about = ast.literal_eval(given["ABOUT"])
    assert (about["method"], about["training_datasets"]) == (model_of(kind).method, ["a", "b", "c", "d"])
    assert about["prior"] == model_of(kind).prior.estimate
    assert ast.literal_eval(given["VOTERS"]) == list(model_of(kind).voter_names)


HOSTILE = ['""" + __import__("os").abort() + """', "$scorer ${table} \\", "it's «ü» # {x} %s"]


@pytest.mark.parametrize("n_voters", [3, 11])
def test_names_are_literals_whatever_stands_in_them(n_voters, tmp_path):
    """Of voters, and of the dataset."""
    votes = small_votes(("a", HOSTILE[0]), n_voters=n_voters)
    names = [*HOSTILE, *votes.voter_names[3:]]
    renamed = VoteMatrix(votes.votes, votes.example_ids, names, votes.datasets, votes.labels)
    check_same(fit(renamed, ensembler="Average"), tmp_path, 50)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", b"no JSON"),
        (b"{", b"no JSON"),
        (b"[1]", b"no object"),
        (b'{"other": 1}', b"no voter 'other'"),
        (b'{"judge-0": 2}', b"must be 1, 0 or null, not 2"),
        (b'{"judge-0": -1}', b"not -1"),
        (b'{"judge-0": true}', b"not True"),
        (b'{"judge-0": "1"}', b"not '1'"),
        (b'{"judge-0": NaN}', b"not nan"),
        (b'{"judge-0": [1]}', b"not [1]"),
        (b'{"judge-0": 1, "judge-0": 0}', b"a name comes twice"),
        (b'{"a\\nb\\ud800": 1}', b"no voter"),
        (b'{"judge-0": \xff}', b"utf-8"),
        (b"[" * 100_000, b""),
    ],
)
def test_a_bad_line_ends_the_run_with_its_number(line, why, here):
    """One line on standard error; what came before it was scored."""
    done = run(here, b'{"judge-0": 1}\n' + line + b'\n{"judge-0": 1}\n')
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: line 2")
    assert done.stderr.count(b"\n") == 1
    assert why in done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return the file of a chain."""
    return written(model_of("chain"), tmp_path_factory.mktemp("judge"))


def test_columns_of_a_table_of_votes_may_stand_beside_the_votes(here):
    """What names the item is written again; the rest is not looked at."""
    item = {"dataset": "new", "item_id": "ü", "label": 1, "judge-0": 1.0, "judge-1": 0, "judge-2": None}
    found = json.loads(run(here, json.dumps(item) + "\n").stdout)
    assert [found.pop(name) for name in ("dataset", "item_id")] == ["new", "ü"]
    assert found["n_votes"] == 2
    assert found["p_consistent"] == model_of("chain").score([[1, 0, -1]], streamed=True)[0]


def test_score_is_there_to_import(here):
    """It takes votes alone."""
    code = f"import sys; sys.path.insert(0, {str(here.parent)!r}); from judge import score; "
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            code + "print(repr(score({'judge-0': 1})['p_consistent'])); score({'x': 1})",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert float(done.stdout) == model_of("chain").score([[1, -1, -1]], streamed=True)[0]
    assert "ValueError: the model has no voter 'x'" in done.stderr


@pytest.mark.parametrize(
    ("kind", "why"), [("chain of more voters than a table has", "fitted again"), ("stack with scores", "soft")]
)
def test_models_that_cannot_be_written_down_are_refused(kind, why, tmp_path):
    """One line says why, and nothing is written."""
    with pytest.raises(InputError, match=f"`model` must .*{why}"):
        export_python(model_of(kind), tmp_path / "judge.py")
    assert list(tmp_path.iterdir()) == []

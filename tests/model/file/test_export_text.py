"""The scorer of one file reads texts by the lexical checks that are written into it, and says what deep says."""

import ast
import csv
import json
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep.features.lexical import LEXICAL
from deep.integrations.python_program import export_python, lexical_code
from deep.model import fit
from deep.records import Example, VoteMatrix
from tests import deep_commands as deep
from tests.model.fitted import small_votes

CLAIMS = Path(__file__).parents[3] / "examples" / "claims.csv"
SOME = ("coverage", "dates", "entities", "negation", "numbers", "quotes")


def check_votes(names, other=()):
    """Return votes at random of lexical checks, and of other voters."""
    made = [*(LEXICAL[name]().voter() for name in names), *other]
    votes = small_votes(n_voters=len(made))
    return VoteMatrix(votes.votes, votes.example_ids, made, votes.datasets, votes.labels)


@cache
def model_of(names):
    """Return a stack of lexical checks."""
    return fit(check_votes(names), ensembler="Stack")


MODELS = {"a table": SOME, "sums": tuple(LEXICAL)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the file of each model."""
    folder = tmp_path_factory.mktemp("text")
    paths = {kind: folder / f"{kind.replace(' ', '_')}.py" for kind in MODELS}
    for kind, path in paths.items():
        assert export_python(model_of(MODELS[kind]), path) is None
    return paths


@pytest.fixture(scope="module")
def here(files):
    """Return what each file defines."""
    return {kind: runpy.run_path(str(path)) for kind, path in files.items()}


def check_same(model, found, source, claim):
    """Hold what a file says of one text against what deep says: judgments alike, numbers to 1e-12."""
    judged = [LEXICAL[name]().label(Example(source, claim, "1")) for name in MODELS_OF[len(model.voters)]]
    (row,) = model.scores_of([[judgment.vote for judgment in judged]], streamed=True).records()
    said = [
        (None if j.vote < 0 else j.vote, j.reason, j.rationale, list(j.evidence), voter)
        for j, voter in zip(judged, model.voter_names, strict=True)
    ]
    assert [(j["vote"], j["reason"], j["rationale"], j["evidence"], j["judge"]) for j in found["judges"]] == said
    for name in ("p_consistent", "p_low", "p_high"):
        assert abs(found[name] - row[name]) <= 1e-12
    assert [found[name] for name in ("decision", "sure")] == [row[name] for name in ("decision", "sure")]


MODELS_OF = {len(names): names for names in MODELS.values()}

PIECES = [
    *"aA1.!?,:;'\"%$€£¥-()[] \n\t\u2028\u2019“”„«»…。\uff01\uff1f।\u0301\u200dß",
    *"İ\u0131ΣςÅ雨\u0661²½\ud800\U0001f600\u202e\xa0\x85\x1c",
    *("3.5 %", "$1,200", "1k", "12:30", "5 pm", "Q3", "No. 5", "Dr. Wu", "U.S.", "Inc. The", "COVID-19", "May", "may"),
    *("not", "only", "never rose", "fell", "twenty-five", "one hundred and two", "about 1,820 million", "per cent"),
    *("Bank of Japan", "BOJ", "“did not expect”", "``so many''", "It rained.Then", "\n\n", "1. First"),
    "The river rose by 14 centimetres on Monday. ",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), min_size=1, max_size=25).map(
    lambda pieces: " ".join(pieces).replace("\0", "")
)
ODD = st.tuples(TEXTS, TEXTS, st.booleans()).map(lambda t: (t[0], t[0][: len(t[0]) // 2] + t[1] if t[2] else t[1]))


@settings(max_examples=60)
@given(pair=ODD.filter(lambda pair: all(text.strip() for text in pair)))
@pytest.mark.parametrize("kind", MODELS)
def test_odd_texts_are_scored_alike(kind, pair, here):
    """Numbers in all notations, other scripts, marks, lone surrogates: what is said and P."""
    check_same(model_of(MODELS[kind]), here[kind]["score_text"](*pair), *pair)


def program(path, text, *options):
    """Run a file as a program."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(path), *options], input=text, capture_output=True, check=False
    )


@pytest.mark.parametrize("kind", MODELS)
def test_claims_are_scored_as_by_deep_score(kind, files, tmp_path):
    """From the file of examples: votes, rationales, P and interval of every row."""
    model_of(MODELS[kind]).save(tmp_path / "model.json")
    out = tmp_path / "scores.jsonl"
    assert deep.score([str(tmp_path / "model.json"), "--input", str(CLAIMS), "--out", str(out)]) == 0
    rows = [{**row, "label": None} for row in csv.DictReader(CLAIMS.read_text(encoding="utf-8").splitlines())]
    done = program(files[kind], "\n".join(map(json.dumps, rows)).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    expected = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(expected) == len(rows)
    assert {row["decision"] for row in found} == {0, 1, None}
    for one, other in zip(found, expected, strict=True):
        by_judge = {judge["judge"]: judge for judge in other["judges"]}
        assert {judge["judge"]: judge for judge in one["judges"]} == by_judge
        assert [one[name] for name in ("dataset", "item_id", "n_votes")] == [
            other[name] for name in ("dataset", "item_id", "n_votes")
        ]
        for name in ("p_consistent", "p_low", "p_high"):
            assert abs(one[name] - other[name]) <= 1e-12


@pytest.mark.parametrize("kind", MODELS)
def test_it_is_python_3_9_of_the_standard_library(kind, files):
    """Also what it imports, and that nothing newer is called."""
    text = files[kind].read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    modules = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names - {"tomllib"}
    assert "strict=" not in text
    assert "pairwise" not in {
        one.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names
    }
    assert "deep.features" not in re.sub(r'"""(.|\n)*?"""', "", text)
    assert not re.search(r"[ \t]+$", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(LEXICAL))
def test_each_check_stands_alone(name):
    """All names that it uses are there, and no definition that it does not need is any check's."""
    imports, code = lexical_code([name])
    tree = ast.parse("\n".join([*imports, code]), feature_version=(3, 9))
    made = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert LEXICAL[name].__name__ in made
    assert made.isdisjoint({check.__name__ for key, check in LEXICAL.items() if key != name})


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"source": "It rained."}, "the claim must be text, not None"),
        ({"source": " ", "claim": "It rained."}, "the source must be text, not ' '"),
        ({"source": "It rained.", "claim": 5}, "the claim must be text, not 5"),
        ({"source": "It rained.\0", "claim": "It."}, "the source must be text"),
        ({"source": "a", "claim": "b", LEXICAL["dates"]().voter(): 1}, "votes or a text, not both"),
    ],
)
def test_what_is_no_text_is_refused(item, why, files):
    """With the number of the line."""
    done = program(files["a table"], json.dumps(item).encode())
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith("error: line 1: ")
    assert why in done.stderr.decode()


def test_votes_are_read_as_before(files):
    """A model of checks still takes their votes."""
    voter = LEXICAL["dates"]().voter()
    done = program(files["a table"], json.dumps({voter: 1}).encode())
    row = [[1 if name == voter else -1 for name in model_of(SOME).voter_names]]
    assert json.loads(done.stdout)["p_consistent"] == model_of(SOME).score(row, streamed=True)[0]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("strict@0a1b2c3d/small", "'strict@0a1b2c3d/small' is no lexical check"),
        ("lexical-dates@00000000", "'lexical-dates@00000000' is a check of another version"),
        ("lexical-unheard@00000000", "'lexical-unheard@00000000' is a check of another version"),
    ],
)
def test_a_voter_that_cannot_be_written_down_is_named(other, why, tmp_path, capsys):
    """The file takes votes, and the command says in one line why no texts."""
    model = fit(check_votes(("coverage", "numbers"), (other,)), ensembler="Average")
    model.save(tmp_path / "model.json")
    out = tmp_path / "judge.py"
    assert deep.export([str(tmp_path / "model.json"), "--to", "python", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert f"no texts: {why}" in said
    done = program(out, b'{"source": "It rained.", "claim": "It rained."}')
    assert b"the model has no voter 'source'" in done.stderr


def test_a_closed_pipe_ends_it_quietly(files):
    """As `judge.py < votes.jsonl | head` does."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(files["a table"])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    _, said = process.communicate(b"{}\n" * 5_000)
    assert (process.returncode, said) == (141, b"")


def test_longer_texts_than_checks_read_get_no_vote(here):
    """As in deep: no vote on any of them, with the same words."""
    found = here["a table"]["score_text"]("It rained.", "It rained. " * 5000)
    assert {(judge["vote"], judge["reason"]) for judge in found["judges"]} == {(None, "truncated")}
    assert {judge["rationale"] for judge in found["judges"]} == {
        "The claim has 55,000 characters; a check reads at most 50,000."
    }
    assert found["n_votes"] == 0

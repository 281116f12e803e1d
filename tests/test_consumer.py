"""The types that a project which uses deep gets: no error, and no `Any`, by mypy and by (based)pyright."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SOURCE = """\
import pandas as pd
import polars as pl
import deep

examples = deep.read_examples("claims.csv")
asked = deep.ask(examples, ["lexical"], progress=lambda at: print(at.judged))
votes = deep.VoteMatrix.from_frame(pd.read_csv("votes.csv"), dataset="mine")
model = deep.fit(deep.read_votes(["labeled.csv"]))
p = model.score(votes)
frame = pl.DataFrame({"item_id": ["a"], "strict": [1]})


@deep.judge(name="mine", version="2", cost=0.001, workers=4)
def mine(source: str, claim: str) -> bool:
    return claim in source


@deep.judge
async def slow(example: deep.Example) -> tuple[bool | None, str]:
    return None, example.claim


def plain(claim: str, source: str) -> float:
    return 0.5


def of_question(question: str | None, source: str, claim: str) -> bool | None:
    return None if question is None else claim in source


asked_too = deep.ask([deep.Example("source", "claim", "a", question="Why?")], of_question)
own = deep.ask(examples, [mine, slow, plain, "numbers"], llm="mistral/small", ledger="l.sqlite", workers=64, budget=1.0)
deep.ask(examples, plain)
deep.ask(pd.DataFrame({"source": ["a"], "claim": ["b"]}), ["numbers"])
deep.fit(frame).score_frame("votes.csv", library="polars")
"""
TYPES = {
    "examples": "Examples",
    "next(iter(examples))": "Example",
    "asked": "VoteMatrix",
    "own": "VoteMatrix",
    'mine("source", "claim")': "bool",
    "mine.name": "str",
    "votes": "VoteMatrix",
    "votes.votes": "ndarray[signedinteger]",
    "votes.labels": "ndarray[signedinteger]",
    "votes.voter_names": "tuple[str, ...]",
    "votes.to_frame()": "DataFrame",
    'votes.to_frame(library="polars")': "DataFrame",
    'deep.VoteMatrix.from_frame(pl.DataFrame({"item_id": ["a"]}))': "VoteMatrix",
    "model": "Model",
    "model.method": "str",
    "model.voters[0].name": "str",
    'deep.load("model.json")': "Model",
    "p": "ndarray[float64]",
    "model.intervals(votes)": "ndarray[float64]",
    "model.estimate_prior(votes).estimate": "float",
    "model.explain([1, 0])[0].shapley": "float | None",
    "model.score_frame(votes)": "DataFrame",
    'model.score_frame(votes, library="polars")': "DataFrame",
    'model.deciding("cost=5:1").threshold()': "float",
    'deep.adapt(model, frame, [1], decide="accuracy")': "Model",
    'deep.check(model, "votes.csv", labels=frame)': "Findings",
    "deep.estimate(model, frame)": "DataFrame",
    "deep.report(model, votes)": "ShownReport",
    'deep.read_scores("scores.csv")': "ScoreTable",
    'deep.read_scores("scores.csv").scores': "ndarray[float64]",
    'deep.Example("source", "claim", "a").label': "int | None",
    'deep.Example("source", "claim", "a", question="Why?").question': "str | None",
    "asked_too": "VoteMatrix",
    "deep.Judgment(1).vote": "int",
    "deep.Judgment(1).cost": "float | None",
    "deep.Stack().fit": None,
    "deep.DeepError()": "DeepError",
    "deep.InputError()": "InputError",
    "deep.__version__": "str",
}
"""Expressions by the type that they must have; None: whatever is no `Any`."""

ARRAY = re.compile(
    r"(?:\w+\.)*ndarray\[tuple\[(?:Any|int)(?:, \.\.\.)?\], (?:\w+\.)*dtype\[(?:\w+\.)*(\w+)(?:\[[\w.]+\])?\]\]"
)
"""An array: numpy itself has `Any` for its shape."""


@pytest.fixture
def consumer(tmp_path):
    """Return the file of a project that uses deep."""
    path = tmp_path / "use_deep.py"
    path.write_text(SOURCE + "".join(f"reveal_type({expression})\n" for expression in TYPES), encoding="utf-8")
    return path


def check(found):
    """Compare the types that a checker reveals, in the order of the expressions."""
    plain = [ARRAY.sub(r"ndarray[\1]", text) for text in found]
    short = [re.sub(r"\b(?:\w+\.)+(?=\w)", "", text) for text in plain]
    assert len(short) == len(TYPES)
    for (expression, expected), seen in zip(TYPES.items(), short, strict=True):
        if expected is None:
            assert not seen.startswith(("Any", "Unknown")), expression
        else:
            assert seen == expected, expression


@pytest.mark.slow
def test_mypy_sees_types_and_no_any(consumer):
    """In its strict mode; what `make check` has looked at is not looked at again."""
    words = ["-m", "mypy", "--config-file", ROOT / "pyproject.toml", consumer]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    check(re.findall(r'note: Revealed type is "(.*)"', done.stdout))


@pytest.mark.slow
def test_pyright_sees_types_and_no_any(consumer):
    """In its strict mode, by basedpyright, which is pyright with a node of its own."""
    settings = {"include": [consumer.name], "extraPaths": [str(ROOT)], "typeCheckingMode": "strict"}
    (consumer.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = shutil.which("basedpyright", path=str(Path(sys.executable).parent))
    words = [command, "--project", consumer.parent, "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    message = report["generalDiagnostics"]
    assert [one["message"] for one in message if one["severity"] != "information"] == []
    assert report["summary"]["filesAnalyzed"] == 1
    check(re.search(r'is "(.*)"$', one["message"], re.DOTALL)[1] for one in message)


def test_every_name_of_the_package_is_a_type_of_its_stub():
    """The names are lazy, and the stub, which is all that checkers see, has the same; the package says it is typed."""
    import deep

    stub = (ROOT / "deep" / "__init__.pyi").read_text(encoding="utf-8")
    assert {*re.findall(r"import \w+ as (\w+)", stub)} == {*deep.__all__}
    assert (ROOT / "deep" / "py.typed").exists()

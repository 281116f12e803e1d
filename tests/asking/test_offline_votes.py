"""`deep ask` with judges that need no key: nothing is asked, and one matrix holds them and the prompts."""

import csv
import json
import socket
from typing import ClassVar

import pandas as pd
import pyarrow.parquet as pq
import pytest

from deep import asking
from deep.exceptions import InputError
from deep.features.lexical import LEXICAL
from deep.integrations import encoders
from deep.integrations.encoders._encoder_judge import NetworkJudge
from deep.judges import voter_name
from deep.records import Example, Judgment
from tests.deep_commands import votes as main
from tests.fault_server import FaultServer
from tests.llm.calls import KEY
from tests.llm.crash import PROMPTS, write_examples

ROWS = [
    ("Sales rose to 1,200 units in May.", "Sales fell to 1200 units in May.", 0),
    ("Sales rose to 1,200 units in May.", "Sales rose to 1,300 units.", 0),
    ("Ms Wu did not sell her shares.", "Ms Wu kept all shares.", 1),
    ("Ms Wu sold her shares.", "Ms Wu did not sell her shares.", 0),
]


class FakeJudge(NetworkJudge):
    """Stands for a loaded encoder: always the same judgment."""

    version = "ab" * 32
    settings: ClassVar = {"threshold": 0.25}

    def __init__(self, name, model, judgment):
        self.name, self._model, self.judgment = name, model, judgment
        self.sizes = []

    @property
    def model_id(self):
        """Return the name that was given."""
        return self._model

    def voter(self, llm=""):
        """Return the column's name."""
        return voter_name(self.name, self.version, self._model)

    def label_many(self, examples):
        """Judge, and remember how many there were at once."""
        self.sizes.append(len(examples))
        return [self.judgment for _ in examples]


@pytest.fixture(autouse=True)
def _nobody_is_asked(monkeypatch, request):
    """No key in the environment, and no way out, but where a test serves itself."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if "with_prompts" not in request.node.name:

        def refuse(*_):
            raise AssertionError("a socket was opened")

        monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def examples(tmp_path):
    """Return a file of four examples with labels and documents."""
    path = tmp_path / "news.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["source", "claim", "label", "document_id"])
        table.writerows([*row, f"d{i // 2}"] for i, row in enumerate(ROWS))
    return path


def run(examples, *more):
    """Run the command, and return its status and where the votes go."""
    out = examples.with_name("votes.parquet")
    return main([str(examples), "--out", str(out), *map(str, more)]), out


def test_all_checks_fill_the_matrix(examples, capsys):
    """One column a check, in their order; votes, reasons and scores are what the checks say; no ledger is made."""
    status, out = run(examples, "--lexical", "all")
    assert status == 0
    checks = [make() for make in LEXICAL.values()]
    message = [[check.label(Example(source, claim, "1")) for check in checks] for source, claim, _ in ROWS]
    votes = pd.read_parquet(out)
    assert votes.columns.tolist() == [
        "dataset",
        "item_id",
        "label",
        "document_id",
        *(check.voter() for check in checks),
    ]
    assert votes["label"].tolist() == [row[2] for row in ROWS]
    cells = votes.iloc[:, 4:].fillna(-1).astype(int).to_numpy().tolist()
    assert cells == [[judgment.vote for judgment in row] for row in message]
    reasons = pd.read_parquet(out.with_name("votes.reasons.parquet"))
    assert len(reasons) == sum(cell == -1 for row in cells for cell in row)
    assert set(reasons["reason"]) == {"abstained"}
    scores = pd.read_parquet(out.with_name("votes.soft.parquet"))
    assert scores[checks[0].voter()].tolist() == [row[0].score for row in message]
    assert sorted(path.name for path in examples.parent.iterdir()) == [
        "news.csv",
        "votes.judgments.parquet",
        "votes.parquet",
        "votes.reasons.parquet",
        "votes.run.toml",
        "votes.soft.parquet",
    ]
    printed = capsys.readouterr().out
    assert "4 examples judged" in printed
    assert "cost of this run: $0.00" in printed
    assert "ledger" not in printed


def test_checks_are_chosen_by_name(examples):
    """In any order and more than once, each has one column, in the order of the registry."""
    _, out = run(examples, "--lexical", "opposites,numbers", "--lexical", "numbers")
    names = [name.split("@")[0] for name in pq.read_schema(out).names[4:]]
    assert names == ["lexical-numbers", "lexical-opposites"]


def test_the_files_name_every_judge(examples, monkeypatch):
    """Kind, version, model and settings of each voter are in the metadata."""
    made = {"tiny-nli": FakeJudge("nli-max", "tiny-nli", Judgment(1, score=0.75))}
    made["minilm"] = FakeJudge("embedding", "minilm", Judgment(0, score=-0.5))
    for name in ("load_named_embedding", "load_named_encoder"):
        monkeypatch.setattr(encoders, name, made.__getitem__)
    status, out = run(examples, "--lexical", "numbers", "--encoder", "tiny-nli", "tiny-nli", "--embedding", "minilm")
    assert status == 0
    check, nli, embedding = LEXICAL["numbers"](), made["tiny-nli"], made["minilm"]
    metadata = json.loads(pq.read_schema(out).metadata[b"deep"])
    common = {"version": "ab" * 32, "settings": {"threshold": 0.25}}
    assert metadata["voters"] == {
        check.voter(): {"kind": "lexical", "judge": "numbers", "version": check.version, "model": None},
        nli.voter(): {"kind": "nli", "judge": "nli-max", "model": "tiny-nli", **common},
        embedding.voter(): {"kind": "embedding", "judge": "embedding", "model": "minilm", **common},
    }
    votes, scores = pd.read_parquet(out), pd.read_parquet(out.with_name("votes.soft.parquet"))
    assert votes[nli.voter()].tolist() == [1] * 4
    assert scores[embedding.voter()].tolist() == [-0.5] * 4


def test_a_real_encoder_and_a_real_check_share_a_matrix(examples, tmp_path):
    """A model that is loaded from a folder votes beside the words."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.features.tiny_encoders import save_classifier

    folder = save_classifier(tmp_path / "tiny")
    status, out = run(examples, "--lexical", "numbers", "--encoder", folder, f"other={folder}")
    assert status == 0
    voters = pq.read_schema(out).names[4:]
    assert [name.split("@")[0] for name in voters] == ["lexical-numbers", "nli-max", "nli-max"]
    assert [name.split("/")[1] for name in voters[1:]] == ["tiny", "other"]
    assert pd.read_parquet(out.with_name("votes.soft.parquet"))[voters[1]].between(0, 1).all()


def test_prompts_and_checks_fill_one_matrix_with_prompts_asked(tmp_path, monkeypatch, capsys):
    """Prompts first, and only they are asked and in the ledger; a second run asks nothing and says the same."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    examples = write_examples(tmp_path / "news.csv", 12)
    with FaultServer() as server:
        asked = ["--prompt", PROMPTS[0], "--llm", "tiny", "--base-url", server.url]
        status, out = run(examples, *asked, "--lexical", "coverage", "numbers", "--json")
        assert status == 0
        first = pd.read_parquet(out)
        again, _ = run(examples, *asked, "--lexical", "coverage", "numbers", "--json")
    assert again == 0
    assert [name.split("@")[0] for name in first.columns[4:]] == [PROMPTS[0], "lexical-coverage", "lexical-numbers"]
    pd.testing.assert_frame_equal(first, pd.read_parquet(out))
    summaries = [json.loads(part) for part in capsys.readouterr().out.replace("}\n{", "}\0{").split("\0")]
    assert [summary["answered"] for summary in summaries] == [12, 0]
    assert [voter["done"] for voter in summaries[0]["voters"]] == [12, 12, 12]
    kinds = [voter["kind"] for voter in json.loads(pq.read_schema(out).metadata[b"deep"])["voters"].values()]
    assert sorted(kinds) == ["lexical", "lexical", "prompt"]


def test_a_dry_run_counts_and_writes_nothing(examples, capsys):
    """Judgments that need no LLM are counted, at no cost."""
    assert run(examples, "--lexical", "numbers", "dates", "--dry-run", "--json")[0] == 0
    estimate = json.loads(capsys.readouterr().out)
    assert (estimate["offline_judgments"], estimate["calls"], estimate["dollars"]) == (8, 0, 0.0)
    assert run(examples, "--lexical", "all", "--dry-run")[0] == 0
    assert f"{4 * len(LEXICAL)} judgments that need no LLM, $0.00" in capsys.readouterr().out
    assert [path.name for path in examples.parent.iterdir()] == ["news.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "must be given. Got none."),
        (["--lexical", "number"], "`lexical` must be one of all, coverage, "),
        (["--lexical", "numbers", "--prompt", PROMPTS[0]], "`llm` must be given"),
        (["--embedding", "no/such/folder/here"], "no/such/folder/here"),
    ],
)
def test_what_is_refused(examples, capsys, options, message):
    """One line, status 2, nothing written."""
    assert run(examples, *options)[0] == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in examples.parent.iterdir()] == ["news.csv"]


def test_a_judge_that_fails_on_everything_is_called_out(examples, monkeypatch, capsys):
    """Failures are reasons, and too many of them make the status 1."""
    fake = FakeJudge("nli-max", "broken", Judgment(-1, reason="failed"))
    monkeypatch.setattr(encoders, "load_named_encoder", lambda _: fake)
    status, out = run(examples, "--lexical", "numbers", "--encoder", "broken")
    assert status == 1
    reasons = pd.read_parquet(out.with_name("votes.reasons.parquet"))
    assert (reasons.loc[reasons["voter"] == fake.voter(), "reason"] == "failed").all()
    assert f"{fake.voter()} has no usable answer to 100.0 % of its requests" in capsys.readouterr().out


def test_a_judge_that_breaks_leaves_nothing(examples, monkeypatch, capsys):
    """An error half-way through leaves what was there before."""
    status, out = run(examples, "--lexical", "numbers")
    before = out.read_bytes()
    fake = FakeJudge("nli-max", "broken", None)
    fake.label_many = lambda _: (_ for _ in ()).throw(InputError("`encoder` must work. Got a broken one."))
    monkeypatch.setattr(encoders, "load_named_encoder", lambda _: fake)
    assert (status, run(examples, "--encoder", "broken")[0]) == (0, 2)
    assert capsys.readouterr().err == "error: `encoder` must work. Got a broken one.\n"
    assert out.read_bytes() == before
    assert not list(examples.parent.glob(".*"))


def test_examples_pass_through_a_thousand_at_a_time(tmp_path, monkeypatch):
    """No judge is handed more than a chunk, and the order stays."""
    path = tmp_path / "long.jsonl"
    path.write_text(
        "".join(json.dumps({"source": "It rained.", "claim": f"It rained {i}."}) + "\n" for i in range(2100))
    )
    fake = FakeJudge("nli-max", "tiny", Judgment(1))
    monkeypatch.setattr(encoders, "load_named_encoder", lambda _: fake)
    status, out = run(path, "--encoder", "tiny", "--lexical", "numbers")
    assert status == 0
    assert fake.sizes == [1000, 1000, 100]
    assert pd.read_parquet(out)["item_id"].tolist() == [str(i) for i in range(1, 2101)]


def test_examples_that_change_during_the_run_are_no_table(examples, monkeypatch, capsys):
    """Their votes were asked for on what the file held."""
    run_plan = asking.run_plan

    def run_and_change(*given, **options):
        outcome = run_plan(*given, **options)
        examples.write_text(examples.read_text() + "\n")
        return outcome

    monkeypatch.setattr("deep.asking.run_plan", run_and_change)
    status, out = run(examples, "--lexical", "numbers")
    assert (status, out.exists()) == (2, False)
    err = capsys.readouterr().err
    assert err.startswith("error: `examples` must not change during a run. Got ")
    assert err.endswith("Run the same command again: the answers so far are kept.\n")
    monkeypatch.setattr("deep.asking.run_plan", run_plan)
    assert run(examples, "--lexical", "numbers")[0] == 0

"""`deep data pack`: what goes in, what stays out, and that every command reads the folder."""

import gzip
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from deep import read_votes
from deep.datasets import read_judgments
from deep.datasets.benchmarks import BENCHMARKS
from tests.deep_commands import data, fit, panel, report, score, votes
from tests.scripted_llm import Fault, ScriptedLLM

SECRET = "The walrus of Tromso"
"""Words of a source that the LLM quotes."""


def answer(asked):
    """Return a reply that quotes the source; one claim is not judged."""
    if asked.properties:
        return {"verdict": "NO" if "seven" in asked.user else "YES"}
    return Fault("refused") if "nobody" in asked.user else f'It says "{SECRET} sleeps".\nVERDICT: SUPPORTED'


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Ask two prompts about four datasets, one of them gated; return the table of votes, away from its texts."""
    monkeypatch.chdir(tmp_path)
    claims = ["It sleeps.", "It has seven tusks.", "nobody saw it."]
    rows = [
        (f"{SECRET} sleeps {i}.", claim, int(i != 1), name, f"{i}#a")
        for name in ("mine", "ours", "SummEdits-sales_call", "aggrefact-xsum")
        for i, claim in enumerate(claims)
    ]
    columns = ["source", "claim", "label", "dataset", "example_id"]
    pd.DataFrame(rows, columns=columns).to_csv("claims.csv", index=False)
    with ScriptedLLM(answer) as server:
        asked = ["claims.csv", "--prompt", "yes-no", "deep-strict-steps", "--llm", "tiny", "--base-url", server.url]
        assert votes([*asked, "--max-failure-rate", "1", "--out", "votes.parquet"]) == 0
    return Path("votes.parquet")


def replies_of(folder):
    """Return the replies of a pack as a frame."""
    with gzip.open(folder / "replies.jsonl.gz", "rt", encoding="utf-8") as file:
        return pd.DataFrame(map(json.loads, file))


def everything_in(folder):
    """Return all that stands in the files of a folder, unpacked."""
    tables = [pd.read_parquet(path).to_json() for path in folder.glob("*.parquet")]
    texts = [path.read_text(encoding="utf-8") for path in folder.iterdir() if path.suffix in (".json", ".md", ".toml")]
    return "\n".join([*tables, *texts, replies_of(folder).to_json()])


def test_texts_that_may_not_be_quoted_stay_out(run):
    """Without a licence only SummEdits, whose licence is known, keeps replies; a gated set never does."""
    assert data(["pack", str(run), "--out", "pack"]) == 0
    replies = replies_of(Path("pack"))
    assert set(replies["dataset"][replies["reply"].notna()]) == {"SummEdits-sales_call"}
    assert len(replies) == 24
    details = list(read_judgments("pack"))
    assert len(details) == 24
    assert {d.dataset for d in details if d.rationale or d.passages} == {"SummEdits-sales_call"}

    assert data(["pack", str(run), "--out", "pack", "--licence", "MIT", "aggrefact-xsum=MIT"]) == 0
    told = replies_of(Path("pack"))
    assert set(told["dataset"][told["reply"].isna()]) == {"aggrefact-xsum"}
    card = json.loads(Path("pack/results.json").read_text(encoding="utf-8"))["datasets"]
    assert card["aggrefact-xsum"]["licence_of_texts"].startswith("CC-BY-ND-4.0")
    assert (card["mine"]["licence_of_texts"], card["mine"]["consistent"]) == ("MIT", 2)


def test_a_gated_benchmark_stays_out_under_any_licence(run, monkeypatch):
    """Whoever reads its texts has agreed to conditions; that its licence would let them be quoted changes nothing."""
    gated = replace(BENCHMARKS["llm-aggrefact"], licence="MIT")
    monkeypatch.setattr("deep.integrations.pack.BENCHMARKS", {gated.name: gated})
    assert data(["pack", str(run), "--licence", "aggrefact-xsum=MIT", "mine=MIT", "--out", "pack"]) == 0
    told = replies_of(Path("pack")).groupby("dataset")["reply"].count()
    assert told["aggrefact-xsum"] == 0 < told["mine"]


def test_no_word_of_closed_texts_is_anywhere(run):
    """Where nothing may be quoted, no file holds a word of a source, nor where the texts are on this machine."""
    frame = pd.read_csv("claims.csv").query("dataset != 'SummEdits-sales_call'")
    folder = Path("closed").absolute()
    folder.mkdir()
    frame.to_csv(folder / "claims.csv", index=False)
    with ScriptedLLM(answer) as server:
        asked = [str(folder / "claims.csv"), "--prompt", "yes-no", "deep-strict-steps", "--llm", "tiny"]
        assert votes([*asked, "--base-url", server.url, "--max-failure-rate", "1", "--out", "closed.parquet"]) == 0
    assert SECRET in pd.read_parquet("closed.judgments.parquet").to_json()
    assert data(["pack", "closed.parquet", "--out", "pack"]) == 0
    assert SECRET not in everything_in(Path("pack"))
    assert str(folder) not in "".join(
        path.read_bytes().decode("latin-1") for path in Path("pack").iterdir() if path.suffix == ".parquet"
    )


def test_a_pack_holds_the_run(run):
    """Votes and reasons are the run's; each reply says in which form it was asked, who answered, and its vote."""
    assert data(["pack", str(run), "--out", "pack", "--licence", "MIT"]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet("pack/pack.parquet"), pd.read_parquet(run))
    reasons = [pd.read_parquet(path) for path in ("pack/pack.reasons.parquet", "votes.reasons.parquet")]
    pd.testing.assert_frame_equal(*reasons)
    replies = replies_of(Path("pack"))
    forms = replies.groupby("judge")["form"].agg(lambda values: set(values))
    assert {name.partition("@")[0]: form for name, form in forms.items()} == {
        "yes-no": {"schema"},
        "deep-strict-steps": {"free"},
    }
    table = pd.read_parquet(run).set_index(["dataset", "item_id"])
    for row in replies.query("vote == vote and vote >= 0").itertuples():
        assert table.loc[(row.dataset, row.item), row.judge] == row.vote
    assert set(replies["answered_by"]) == {"tiny-2026"}
    page = Path("pack/README.md").read_text(encoding="utf-8")
    assert "| mine | 3 | 3 | 2 | MIT | yes |" in page
    assert "12 schema" in page


def test_another_run_of_the_ledger_stays_out(run):
    """A ledger holds more than one run: items and judges that the table lacks are not packed."""
    with ScriptedLLM(answer) as server:
        pd.read_csv("claims.csv").query("dataset == 'mine'").assign(dataset="later").to_csv("later.csv", index=False)
        asked = ["later.csv", "--prompt", "yes-no", "--llm", "tiny", "--base-url", server.url]
        assert votes([*asked, "--ledger", "votes.ledger.sqlite", "--out", "later.parquet"]) == 0
    assert data(["pack", str(run), "--out", "pack"]) == 0
    assert "later" not in set(replies_of(Path("pack"))["dataset"])
    assert data(["pack", "later.parquet", "--ledger", "votes.ledger.sqlite", "--out", "two"]) == 0
    assert set(replies_of(Path("two"))["judge"].str.partition("@")[0]) == {"yes-no"}


def test_every_command_reads_the_folder(run, capsys):
    """A pack is a table of votes wherever one is read, with the reasons beside it; a run's folder stays a run."""
    assert data(["pack", str(run), "--out", "pack", "--licence", "MIT"]) == 0
    for path in Path().glob("votes.*"):
        path.unlink()
    assert read_votes("pack").shape == (12, 2)
    assert fit(["pack", "--out", "model.json", "--max-failure-rate", "1"]) == 0
    assert panel(["pack"]) == 0
    assert score(["model.json", "pack", "--out", "scores.csv"]) == 0
    assert report(["model.json", "pack", "--out", "report.html"]) == 0
    assert "deep-strict-steps" in Path("report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert fit(["pack", "--out", "strict.json"]) == 0
    assert "above the limit of 5 %" in "".join(capsys.readouterr())  # by the reasons, which lie in the pack


def test_votes_that_no_llm_gave_need_no_ledger(tmp_path, monkeypatch, capsys):
    """Word checks have no replies: their votes are packed as they are, and `deep fit` reads them."""
    monkeypatch.chdir(tmp_path)
    claims = Path(__file__).parents[3] / "examples" / "claims.csv"
    assert votes([str(claims), "--lexical", "numbers", "negation", "--out", "votes.parquet"]) == 0
    assert data(["pack", "votes.parquet", "--out", "pack"]) == 0
    assert (
        "120 items, 2 judges, 0 replies: pack; datasets without replies and rationales, which quote the texts: 5"
        in capsys.readouterr().out
    )
    assert not Path("pack/replies.jsonl.gz").exists()
    assert (read_votes("pack").votes == read_votes("votes.parquet").votes).all()


def test_what_is_refused(run, capsys):
    """Each in one line, before a folder is made."""
    shutil.copy(run, "moved.parquet")
    for words, told in {
        "claims.csv": "`votes` must be a Parquet table that `deep ask` wrote. Got 'claims.csv'.",
        "votes.parquet --licence them=MIT": "`licence` must name datasets of the votes: SummEdits",
        "moved.parquet": "`ledger` must be a file. Got none at 'moved.ledger.sqlite'.",
    }.items():
        assert data(["pack", *words.split(), "--out", "pack"]) == 2
        assert told in capsys.readouterr().err
        assert not Path("pack").exists()


def test_real_votes_of_public_texts(tmp_path, monkeypatch, data_home):
    """`make real` asks about ten datasets, packs the votes, and asks nothing when it runs again."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "benchmarks"))
    import real

    with ScriptedLLM(answer) as server:
        words = ["--url", server.url, "--model", "org/tiny", "--sample", "2", "--out", str(tmp_path)]
        words += ["--prompt", "yes-no"]
        assert real.main(words) in (0, 1)
        n_asked = len(server.asked)
        assert real.main(words) in (0, 1)
        assert len(server.asked) == n_asked == 20
    sys.modules.pop("real")
    assert len(set(read_votes(tmp_path / "org-tiny" / "pack").datasets)) == 10
    replies = replies_of(tmp_path / "org-tiny" / "pack")
    assert set(replies["dataset"][replies["reply"].isna()]) == {"SummEval"}

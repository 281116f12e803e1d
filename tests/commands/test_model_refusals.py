"""What `deep fit`, `deep score`, `deep score explain` and `deep export` refuse: one line, status 2, nothing written."""

import pickle

import pandas as pd
import pytest

from deep.model import load
from tests.commands.model_case import IDS, QUICK, fit_here, frame_of, refused, scored
from tests.deep_commands import (
    adapt,
    check,
    estimate,
    explain,
    export,
    fit,
    label_list,
    panel,
    score,
    select,
)
from tests.model.fitted import small_votes


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a folder with votes and a model."""
    return fit_here(tmp_path_factory.mktemp("model"))


BROKEN = {
    "edited.json": lambda raw: raw.replace(b'"n": 120', b'"n": 121', 1),
    "truncated.json": lambda raw: raw[:-200],
    "pickle.json": lambda raw: pickle.dumps({"format": "deep model"}),
    "empty.json": lambda raw: b"",
    "binary.json": lambda raw: bytes(range(256)),
    "utf16.json": lambda raw: raw.decode().encode("utf-16"),
    "newer.json": lambda raw: raw.replace(b'"schema_version": 6', b'"schema_version": 99', 1),
    "other.json": lambda raw: b'{"name": "package"}',
    "infinite.json": lambda raw: raw.replace(b'"balanced_accuracy": 0.', b'"balanced_accuracy": 1e999, "x": 0.', 1),
}


@pytest.mark.parametrize("name", [*BROKEN, "absent.json", "folder"])
def test_a_bad_model_file_is_refused_by_every_command(here, tmp_path, capsys, name):
    """One line, exit status 2, nothing written."""
    bad = tmp_path / name
    if name in BROKEN:
        bad.write_bytes(BROKEN[name]((here / "model.json").read_bytes()))
    elif name == "folder":
        bad.mkdir()
    before = sorted(tmp_path.iterdir())
    votes = here / "votes.csv"
    assert "`model` must be" in refused(capsys, score, bad, "--votes", votes, "--out", tmp_path / "s.csv")
    assert "`model` must be" in refused(capsys, score, bad, "--source-text", "a", "--claim-text", "b")
    assert "`model` must be" in refused(capsys, explain, bad, "--vote", "judge-0=1")
    assert "`model` must be" in refused(capsys, export, bad, "--to", "sql", "--out", tmp_path / "m.sql")
    words = ("--votes", votes, "--labels", votes)
    assert "`model` must be" in refused(capsys, adapt, bad, *words, "--out", tmp_path / "mine.json")
    assert "`model` must be" in refused(capsys, estimate, bad, *words)
    assert "`model` must be" in refused(capsys, label_list, bad, "--votes", votes, "--out", tmp_path / "l.csv")
    assert "`model` must be" in refused(capsys, select, bad, "--votes", votes, "--out", tmp_path / "d.csv")
    assert "`model` must be" in refused(capsys, check, bad, "--votes", votes)
    assert sorted(tmp_path.iterdir()) == before


def bad_tables(folder, good):
    """Return files of votes that cannot be used, with the reason for each."""
    voter = [name for name in good if name.startswith("judge")]
    text = good.to_csv(index=False).encode()
    files = {
        "empty.csv": (b"", "not empty"),
        "binary.csv": (bytes(range(256)) * 4, "UTF-8"),
        "latin.csv": (text.replace(b"\na,", "\né,".encode("latin-1"), 1), "UTF-8"),
        "binary.parquet": (b"PAR1" + bytes(range(256)), "Parquet"),
        "truncated.parquet": (good.to_parquet(index=False)[:-300], "Parquet"),
        "notes.txt": (text, "must end in"),
    }
    for name, (raw, _) in files.items():
        (folder / name).write_bytes(raw)
    twice = pd.concat([good, good.iloc[:1]])
    typo = good.astype({voter[1]: "Int64"})
    typo.iloc[3, good.columns.get_loc(voter[1])] = 7
    label = good.astype({"label": float})
    label.iloc[3, 2] = 5
    other = good.rename(columns={name: f"other-{i}" for i, name in enumerate(voter)})
    frames = {
        "twice": (twice, "must be unique within a dataset"),
        "typo": (typo, "must be 0, 1 or empty"),
        "label": (label, "`label` must be 0, 1 or empty"),
        "keyless": (good.drop(columns="item_id"), "must have a column item_id"),
        "other": (other, "must have"),
        "rowless": (good.iloc[:0], "at least one row"),
    }
    for name, (frame, _) in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    reasons = {name: reason for name, (_, reason) in files.items()}
    for ending in ("csv", "parquet"):
        reasons |= {f"{name}.{ending}": reason for name, (_, reason) in frames.items()}
    return {**reasons, "absent.csv": "existing"}


def test_bad_votes_are_refused_in_one_line_and_nothing_is_written(here, tmp_path, capsys):
    """Each fault by those that read tables in their two ways, one fault by every command that reads votes."""
    model = load(here / "model.json")
    good = pd.read_parquet(here / "votes.parquet")[[*IDS, *model.voter_names]]
    reasons = bad_tables(tmp_path, good)
    before = sorted(tmp_path.iterdir())
    for name, reason in reasons.items():
        words = (here / "model.json", "--votes", tmp_path / name, "--out", tmp_path / "s.csv")
        assert reason in refused(capsys, score, *words), name
        if not name.startswith("other"):
            assert reason in refused(capsys, fit, tmp_path / name, "--out", tmp_path / "m.json", *QUICK), name
    of_model = [here / "model.json", "--votes", tmp_path / "typo.parquet"]
    for command, more in (
        (adapt, ["--out", tmp_path / "m.json"]),
        (check, []),
        (estimate, []),
        (explain, ["--item", "i0"]),
        (label_list, ["--out", tmp_path / "s.csv"]),
        (select, ["--out", tmp_path / "s.csv"]),
    ):
        assert reasons["typo.parquet"] in refused(capsys, command, *of_model, *more)
    assert reasons["typo.parquet"] in refused(capsys, panel, *of_model[1:])
    assert sorted(tmp_path.iterdir()) == before


def test_votes_of_another_version_are_refused(here, tmp_path, capsys):
    """Unless that is allowed."""
    prompts = {"judge-0": "strict@0a1b2c3d/tiny", "judge-1": "plain@11111111/tiny", "judge-2": "last@22222222/tiny"}
    table = frame_of(small_votes()).rename(columns=prompts)
    table.to_parquet(tmp_path / "votes.parquet")
    assert fit([str(tmp_path / "votes.parquet"), "--out", str(tmp_path / "model.json"), *QUICK]) == 0
    expected = scored(tmp_path, "--votes", tmp_path / "votes.parquet")
    for new, what in (("strict@ffffffff/tiny", "version"), ("strict@0a1b2c3d/large", "model")):
        table.rename(columns={prompts["judge-0"]: new}).to_parquet(tmp_path / "new.parquet")
        capsys.readouterr()
        words = ("--votes", tmp_path / "new.parquet")
        err = refused(capsys, score, tmp_path / "model.json", *words, "--out", tmp_path / "x.csv")
        assert f"must come from the {what} of 'strict'" in err
        result = scored(tmp_path, *words, "--allow-mismatch", out="n.parquet")
        pd.testing.assert_frame_equal(result, expected)


@pytest.mark.parametrize(
    ("command", "words", "reason"),
    [
        (score, ["--votes", "V"], "`out` must be given"),
        (score, ["--votes", "V", "--out", "s.txt"], "`out` must end in .csv or .parquet"),
        (score, ["--votes", "V", "--out", "D/none/s.csv"], "`out` must lie in a writable folder"),
        (score, ["--votes", "V", "--out", "D/s.csv", "--prior", "1"], "`prior` must lie"),
        (score, [], "must be given"),
        (score, ["--votes", "V", "--source-text", "a"], "more than one"),
        (score, ["--source-text", "a"], "`claim` or `claim_text` must be given"),
        *(
            (score, ["--votes", "V", "--out", "D/s.csv", *option], f"`{name}` must be given with text. Got")
            for name, option in {
                "rpm": ["--rpm", "-1"],
                "llm": ["--llm", "tiny"],
                "encoder": ["--encoder", "none"],
                "claim_column": ["--claim-column", "text"],
            }.items()
        ),
        (export, ["--to", "csv", "--out", "D/m.sql"], "`out` must end in .csv"),
        (export, ["--to", "sql", "--out", "D/m.sql", "--table", " "], "`table` must be printable text"),
        (export, ["--to", "sql", "--out", "D/m.sql", "--table", "x\n; DROP"], "Got the control character U+000A"),
        *(
            (
                export,
                ["--to", to, "--out", f"D/m.{ending}", "--table", "mine"],
                f"`table` must be given with `to` sql. Got it with {to}",
            )
            for to, ending in (("csv", "csv"), ("parquet", "parquet"))
        ),
        (explain, [], "must be given"),
        (explain, ["--votes", "V"], "Give --votes FILE --item ID, or --vote NAME=1"),
        (explain, ["--vote", "nobody=1"], "Got 'nobody=1'"),
        (explain, ["--vote", "judge-0=2"], "Got 'judge-0=2'"),
        (explain, ["--votes", "V", "--item", "none"], "of 0 (datasets: none)"),
        (fit, ["V", "--out", "D/m.txt"], "`out` must end in .json"),
        (fit, ["V", "--out", "D"], "`out` must end in .json"),
        (fit, ["V", "--sizes", "two"], "`sizes` must hold"),
        (fit, ["V", "--exclude", "a,b,c,d"], "must leave a dataset"),
        (fit, ["V", "--only", "nothing"], "`only`"),
        (fit, ["V", "--jobs", "0"], "`jobs` must be at least 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(here, tmp_path, capsys, command, words, reason):
    """One line, exit status 2, nothing written."""
    places = {"V": str(here / "votes.csv"), "D": str(tmp_path)}
    words = [places.get(w, w.replace("D/", f"{tmp_path}/")) for w in words]
    if command is not fit:
        words.insert(0, str(here / "model.json"))
    elif "--out" not in words:
        words += ["--out", str(tmp_path / "m.json")]
    assert reason in refused(capsys, command, *words)
    assert list(tmp_path.iterdir()) == []

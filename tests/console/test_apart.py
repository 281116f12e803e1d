"""No command writes over what it reads."""

import argparse
import json
import os
from pathlib import Path

import pytest

from deep._util.files import RESULTS
from deep.cli import main
from deep.console import check_apart
from deep.exceptions import InputError
from deep.experiments.cognibench._cognibench_tables import PARTS
from tests.guests.experiments.test_probe_measures import samples, write_samples

WORDS = {
    "adapt": ["{path}.json", "--votes", "v.csv", "--out", "{path}.json"],
    "loo": ["--test", "a", "--votes", "{path}.csv", "--out", "run"],
    "data moments": ["m.json", "--moments", "{path}.json", "--out", "{path}.json"],
    "votes": ["{path}.parquet", "--lexical", "all", "--out", "{path}.parquet"],
}


@pytest.mark.parametrize("name", WORDS)
def test_an_input_is_never_the_output(name, tmp_path, monkeypatch, capsys):
    """Neither by another spelling of its path, nor as part of a folder that is written anew."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / RESULTS).write_text("{}")
    before = {}
    for path in (tmp_path / "run" / f"mine.{kind}" for kind in ("csv", "json", "parquet")):
        path.write_text("mine")
        before[path] = path.stat()
    (tmp_path / "here").symlink_to("run")
    given = iter(["run/mine", "here/../run/mine"])
    words = [word.format(path=next(given)) if "{" in word else word for word in WORDS[name]]
    assert main([*name.split(), *words]) == 2
    assert "`out` must differ from `" in capsys.readouterr().err
    assert all(os.path.samestat(path.stat(), old) for path, old in before.items())


OWN = {
    "cognibench curve": (["1=run/mine", "--method", "m", "--out", "run/mine"], "points"),
    "loo": (["--test", "a", "--votes", "runs/loo-a/mine.csv"], "votes"),
    "probe eval": (["--data", "run/mine", "--llm", "m", "--out", "run/mine"], "data"),
}
"""Inputs that are folders, or stand behind an equals sign, and a folder that no option names."""

METHOD = {"method": "m", "group": "direct", "macro_f1": 1.0, "parts": {part: {"f1": 1.0} for part in PARTS}}


@pytest.mark.parametrize("name", OWN)
def test_nor_is_what_only_the_command_knows_of(name, tmp_path, monkeypatch, capsys):
    """It is refused before anything is asked, trained or written."""
    monkeypatch.chdir(tmp_path)
    words, option = OWN[name]
    for folder in ("run/base", "run/mine", "runs/loo-a"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / RESULTS).write_text(json.dumps({"methods": [METHOD]}))
    (tmp_path / "run" / RESULTS).write_text("{}")
    rows = "".join(f"{dataset},{i},{i % 2},1,0,1\n" for dataset in "ab" for i in range(9))
    (tmp_path / "runs" / "loo-a" / "mine.csv").write_text(f"dataset,item_id,label,w,x,z\n{rows}")
    write_samples(tmp_path / "run" / "mine" / "evaluation.jsonl", samples())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main([*name.split(), *words]) == 2
    assert f"`out` must differ from `{option}`" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_name_that_is_also_a_folder_is_no_input(tmp_path, monkeypatch):
    """A benchmark or dataset may be called as the folder of its results."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fect").mkdir()
    check_apart(argparse.Namespace(data="fect", test="x" * 5000, out=Path("fect")))


def test_a_ledger_that_is_not_there_yet_would_go_with_the_folder(tmp_path):
    """What is paid is not written to where a run takes the place of an earlier one."""
    (tmp_path / RESULTS).write_text("{}")
    args = argparse.Namespace(ledger=str(tmp_path / "ledger.sqlite"), out=tmp_path)
    with pytest.raises(InputError, match=r"`out` must differ from `ledger`\..*Name another"):
        check_apart(args)
    check_apart(argparse.Namespace(ledger="postgresql://a/b", out=tmp_path))

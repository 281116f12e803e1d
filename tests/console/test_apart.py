"""No command writes over what it reads."""

import argparse
import os
from pathlib import Path

import pytest

from deep._files import MARKER
from deep.cli import main
from deep.console import check_apart
from deep.exceptions import InputError

WORDS = {
    "adapt": ["{path}.json", "--votes", "v.csv", "--out", "{path}.json"],
    "fit": ["{path}.json", "--out", "{path}.json"],
    "label list": ["m.json", "--votes", "{path}.csv", "--out", "{path}.csv"],
    "loo": ["--test", "a", "--votes", "{path}.csv", "--out", "run"],
    "moments": ["m.json", "--moments", "{path}.json", "--out", "{path}.json"],
    "panel compare": ["{path}.csv", "--out", "run"],
    "score": ["m.json", "--votes", "{path}.csv", "--out", "{path}.csv"],
    "select": ["m.json", "--votes", "{path}.csv", "--out", "{path}.csv"],
    "votes": ["{path}.parquet", "--lexical", "all", "--out", "{path}.parquet"],
}


@pytest.mark.parametrize("name", WORDS)
def test_an_input_is_never_the_output(name, tmp_path, monkeypatch, capsys):
    """Neither by another spelling of its path, nor as part of a folder that is written anew."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / MARKER).write_text("{}")
    before = {}
    for path in (tmp_path / "run" / f"mine.{kind}" for kind in ("csv", "json", "parquet")):
        path.write_text("mine")
        before[path] = path.stat()
    (tmp_path / "here").symlink_to("run")
    given = iter(["run/mine", "here/../run/mine"])
    words = [word.format(path=next(given)) if "{" in word else word for word in WORDS[name]]
    assert main([*name.split(), *words]) == 2
    assert "`out` must leave `" in capsys.readouterr().err
    assert all(os.path.samestat(path.stat(), old) for path, old in before.items())


def test_a_name_that_is_also_a_folder_is_no_input(tmp_path, monkeypatch):
    """A benchmark or dataset may be called as the folder of its results."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fect").mkdir()
    check_apart(argparse.Namespace(data="fect", test="x" * 5000, out=Path("fect")))


def test_a_ledger_that_is_not_there_yet_would_go_with_the_folder(tmp_path):
    """What is paid is not written to where a run takes the place of an earlier one."""
    (tmp_path / MARKER).write_text("{}")
    args = argparse.Namespace(ledger=str(tmp_path / "ledger.sqlite"), out=tmp_path)
    with pytest.raises(InputError, match=r"`out` must leave `ledger` as it is\..*Name another"):
        check_apart(args)
    check_apart(argparse.Namespace(ledger="postgresql://a/b", out=tmp_path))

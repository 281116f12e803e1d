"""Results are written whole or not at all, and never over something else."""

import json

import pytest

from deep._files import check_replaceable, to_json, whole_folder
from deep.exceptions import InputError


def test_failure_leaves_the_old_run_untouched(tmp_path):
    """An exception inside leaves the earlier folder as it was and no trace of the new one."""
    out = tmp_path / "runs" / "x"
    with whole_folder(out) as folder:
        (folder / "results.json").write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_folder(out) as folder:
        (folder / "results.json").write_text("half")
        raise KeyboardInterrupt
    assert (out / "results.json").read_text() == "old"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["x"]


def test_new_run_replaces_the_old_one(tmp_path):
    """Files of the earlier run do not survive in the new one."""
    out = tmp_path / "x"
    for name in ("first", "second"):
        with whole_folder(out) as folder:
            (folder / "results.json").write_text(name)
            (folder / name).write_text("")
    assert sorted(path.name for path in out.iterdir()) == ["results.json", "second"]


def test_folders_of_others_are_never_replaced(tmp_path):
    """A folder with files but no results.json, or a file, is refused before anything runs."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"`out` must be a new folder or an earlier run"):
        check_replaceable(tmp_path)
    with pytest.raises(InputError, match=r"`out` must be a folder. Got the file"):
        check_replaceable(tmp_path / "thesis.tex")
    check_replaceable(tmp_path / "new" / "deeper")


def test_json_refuses_nan():
    """A NaN in the results is a bug, not a value."""
    assert json.loads(to_json({"a": None})) == {"a": None}
    with pytest.raises(ValueError, match=r"JSON compliant"):
        to_json({"a": float("nan")})

"""Results are written whole or not at all, and never over something else."""

import json
import sys
import time
import weakref

import pytest

from deep._files import check_replaceable, to_json, whole_folder
from deep.console._options import Values, guarded
from deep.exceptions import DeepError, InputError


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


def test_values_repeat_split_and_keep_file_names(tmp_path, monkeypatch):
    """Several values come by blanks, commas or repetition; an existing file with a comma stays whole."""
    import argparse

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.csv").write_text("")
    parser = argparse.ArgumentParser()
    parser.add_argument("--votes", action=Values, nargs="+", default=["unset"])
    given = parser.parse_args(["--votes", "x,y", "a,b.csv", "--votes", "z"])
    assert given.votes == ["x", "y", "a,b.csv", "z"]
    assert vars(given) == {"votes": given.votes}
    assert parser.parse_args([]).votes == ["unset"]


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [(DeepError("`x` must be 1."), 2, "error: `x` must be 1.\n"), (KeyboardInterrupt(), 130, "interrupted; nothing")],
)
def test_errors_are_one_line(error, status, text, capsys):
    """What a user can mend is one line on stderr, never a traceback."""

    def run(argv):
        raise error

    assert guarded(run, []) == status
    captured = capsys.readouterr()
    assert captured.err.startswith(text)
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_bugs_keep_their_traceback():
    """Anything else is not swallowed."""

    def run(argv):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guarded(run, sys.argv)


def raised_in_a_callback(error):
    """Raise where Python drops it: in what is called when an object goes."""

    class Thing:
        pass

    def callback(_):
        raise error

    thing = Thing()
    reference = weakref.ref(thing, callback)
    del thing
    return reference


def test_an_interrupt_that_a_callback_drops_is_heard(capsys):
    """Ctrl-C at the moment when Python can only print it still ends the command."""

    def run(argv):
        raised_in_a_callback(KeyboardInterrupt)
        for _ in range(1000):
            time.sleep(0.01)
        return 0

    hook = sys.unraisablehook
    assert guarded(run, []) == 130
    assert capsys.readouterr().err == "interrupted; nothing was written\n"
    assert sys.unraisablehook is hook


def test_other_errors_in_callbacks_are_shown_as_ever(monkeypatch):
    """Only interrupts are taken up."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_type))

    def run(argv):
        raised_in_a_callback(ZeroDivisionError)
        return 0

    assert guarded(run, []) == 0
    assert seen == [ZeroDivisionError]

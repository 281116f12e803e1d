"""The `deep` command: its table, its errors and statuses, Ctrl-C, and sub-commands."""

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import weakref
from types import SimpleNamespace

import pytest

from deep import __version__ as version
from deep.cli import GROUPS, main
from deep.console import CommandParser, Subcommand, Values, print_result, run_subcommand
from deep.exceptions import DeepError, StoppedError
from tests.deep_commands import COMMAND_NAMES


def ran(run, monkeypatch):
    """Return the status of a command that does what `run` does."""
    command = SimpleNamespace(
        __doc__="Test.\n\nFor instance:\n\n  deep test\n", add_arguments=lambda parser: None, run=run
    )
    monkeypatch.setattr("deep.cli.import_module", lambda name: command)
    return main(["fit"])


def test_unknown_command_lists_the_known(capsys):
    """A typo exits 2 with one line that names the commands."""
    assert main(["lou"]) == 2
    err = capsys.readouterr().err
    assert f"`COMMAND` must be one of {', '.join(COMMAND_NAMES)}. Got 'lou'. Did you mean `loo`?" in err


def test_an_option_like_a_wrong_one_is_proposed(capsys):
    """In the one line of the error; nothing is proposed where none is alike."""
    with pytest.raises(SystemExit):
        main(["ask", "a.csv", "--lexcal", "all"])
    assert capsys.readouterr().err.endswith("unrecognized arguments: --lexcal all. Did you mean `--lexical`?\n")
    with pytest.raises(SystemExit):
        main(["ask", "a.csv", "--zzz"])
    assert "Did you mean" not in capsys.readouterr().err


def test_help_shows_the_groups(capsys):
    """Each with its commands below it."""
    assert main(["--help"]) == 0
    blocks = capsys.readouterr().out.split("\n\n")
    shown = {title: [line.split()[0] for line in rows] for title, *rows in (b.splitlines() for b in blocks[2:-1])}
    guests = shown.pop("pages, servers and studies:")
    assert shown == {f"{title}:": list(group) for title, group in GROUPS.items()}
    assert sorted([*guests, *(name for group in shown.values() for name in group)]) == COMMAND_NAMES


def test_version(capsys):
    """`deep --version` prints the version."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"deep {version}\n"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (DeepError("`x` must be 1."), 2, "error: `x` must be 1.\n"),
        (KeyboardInterrupt(), 130, "interrupted; nothing"),
        (OSError(28, "No space left on device"), 2, "error: output must be usable. Got: No space left on device. "),
        (OSError(13, "Permission denied", "x"), 2, "error: 'x' must be usable. Got: Permission denied. "),
        (MemoryError(), 2, "error: memory must be enough"),
        (StoppedError("budget"), 3, "stopped: the budget is reached. Nothing was written. "),
        (StoppedError("interrupted", "Add --resume."), 130, "stopped: interrupted. Add --resume.\n"),
    ],
)
def test_errors_are_one_line(error, status, text, monkeypatch, capsys):
    """What a user can mend is one line on stderr, never a traceback."""

    def run(args):
        raise error

    assert ran(run, monkeypatch) == status
    captured = capsys.readouterr()
    assert captured.err.startswith(text)
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_bugs_keep_their_traceback(monkeypatch):
    """Anything else is not swallowed."""

    def run(args):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ran(run, monkeypatch)


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


@pytest.mark.parametrize("ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_an_interrupt_that_a_callback_drops_is_heard(ctrl_c, monkeypatch, capsys):
    """Ctrl-C at the moment when Python can only print it still ends the command.

    So do SIGTERM and SIGHUP where a script has had Ctrl-C ignored.
    """
    before = signal.signal(signal.SIGINT, ctrl_c)

    def run(args):
        raised_in_a_callback(KeyboardInterrupt)
        for _ in range(1000):
            time.sleep(0.01)
        return 0

    hook = sys.unraisablehook
    try:
        assert ran(run, monkeypatch) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "interrupted; nothing was written\n"
    assert sys.unraisablehook is hook


def test_other_errors_in_callbacks_are_shown_as_ever(monkeypatch):
    """Only interrupts are taken up."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_type))

    def run(args):
        raised_in_a_callback(ZeroDivisionError)
        return 0

    assert ran(run, monkeypatch) == 0
    assert seen == [ZeroDivisionError]


def two_things(standard=None):
    """Return a parser of the sub-commands `look FILE` and `report`."""
    parser = CommandParser(prog="deep x", description="Test.", epilog="examples:")
    look = Subcommand("look", "look at a file", lambda p: p.add_argument("file"), lambda args: args.file)
    report = Subcommand("report", "print a report", lambda p: p.add_argument("--json"), vars)
    parser.add_subcommands(look, report, standard=standard)
    return parser


def test_the_standard_sub_command_runs_where_none_is_named():
    """A file of any name but a sub-command's; what is left in the options are its own alone."""
    parser = two_things("look")
    assert run_subcommand(parser.parse(["a.csv"])) == "a.csv"
    assert run_subcommand(parser.parse(["look", "report"])) == "report"
    assert run_subcommand(parser.parse(["report", "--json", "x"])) == {"json": "x"}


def test_one_of_several_sub_commands_must_be_named(capsys):
    """Where none is standard."""
    with pytest.raises(SystemExit, match="2"):
        two_things().parse([])
    assert "look | report" in capsys.readouterr().err


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


@pytest.mark.parametrize("value", ["", " ", ",", " , "])
def test_an_option_without_a_value_is_not_passed_over(value, capsys):
    """An empty variable of a script would else leave out the labels, say, without a word."""
    with pytest.raises(SystemExit) as ended:
        main(["fit", "votes.csv", "--labels", value])
    assert ended.value.code == 2
    assert f"deep fit: error: argument --labels: must name at least one. Got {value!r}" in capsys.readouterr().err


def test_errors_and_output_are_printable_lines(monkeypatch, capsys):
    """An ANSI escape, a mark of writing direction or a line break in a name reaches no terminal."""

    def refuse(_args):
        raise DeepError("Got '\x1b[31m\u202eevil\n'.")

    assert ran(refuse, monkeypatch) == 2
    assert capsys.readouterr().err == "error: Got '\\x1b[31m\\u202eevil\\n'.\n"
    print_result({}, ["an item \x1b[2J", "résumé 日本"], as_json=False)
    assert capsys.readouterr().out == "an item \\x1b[2J\nrésumé 日本\n"


def test_a_word_that_is_not_known_is_shown_on_one_line(capsys):
    """An ANSI escape in it reaches no terminal."""
    with pytest.raises(SystemExit) as ended:
        main(["fit", "votes.csv", "--out", "model.json", "--nothing", "a\x1b[31m\nb"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("deep fit: error: unrecognized arguments: --nothing a\\x1b[31m\\nb\n")


SCRIPT = "-c 'import sys, deep_judges; sys.exit(deep_judges.main())'"
"""What pip writes as `deep`."""


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def deep(request):
    """Return a function that runs a command in a shell with its streams redirected, by each buffering of Python."""

    def run(words, redirect, start="-m deep"):
        # What is to fit no file is no bytecode either.
        environment = os.environ | {"PYTHONUNBUFFERED": request.param, "PYTHONDONTWRITEBYTECODE": "1"}
        command = f"{shlex.quote(sys.executable)} {start} {words} {redirect}"
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)

    return run


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("-m deep", "--version"),
        ("-m deep", "prompts list --json"),
        (SCRIPT, "prompts list --help"),
        ("-m deep.experiments.loo", "--help"),
    ],
)
@pytest.mark.parametrize("redirect", ["> /dev/full", ">&-"])
def test_output_that_cannot_be_written_is_one_line(start, words, redirect, deep):
    """No traceback, not even as Python ends, and not status 0."""
    ran = deep(words, redirect, start)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: output must be usable. Got: ")
    assert ran.stderr.count("\n") == 1


def test_output_of_which_half_finds_room_is_an_error(tmp_path, deep):
    """Python's own unbuffered stream drops the other half without a word."""
    out = tmp_path / "out"
    ran = deep(
        "prompts list --json",
        f"> {shlex.quote(str(out))}",
        "-c 'import resource; from deep.cli import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); raise SystemExit(main())'",
    )
    assert (ran.returncode, out.stat().st_size) == (2, 1000)
    assert ran.stderr.startswith("error: output must be usable. Got: File too large.")


@pytest.mark.parametrize("words", ["prompts list --json", "prompts list --help"])
def test_a_reader_that_went_away_is_no_error(words, deep):
    """`| head -0`: silence, and the status of SIGPIPE."""
    ran = deep(words, "| true; exit ${PIPESTATUS[0]}")
    assert (ran.returncode, ran.stdout, ran.stderr) == (141, "", "")


CANNOT_BE_SAID = ["2>&-", "2> /dev/full", "2> >(true)"]


@pytest.mark.parametrize("redirect", [*CANNOT_BE_SAID, "<&-", "<&- 2>&-"])
def test_other_streams_may_be_closed(redirect, deep):
    """An error that nobody can read has its status; a result is printed as ever."""
    assert deep("lou", redirect).returncode == 2
    assert deep("fit --nothing", redirect, SCRIPT).returncode == 2
    assert deep("--version", redirect).stdout == f"deep {version}\n"


@pytest.mark.parametrize("redirect", ["> /dev/full 2>&1", ">&- 2>&-", "<&- >&- 2>&-"])
def test_both_streams_may_be_closed(redirect, deep):
    """The status is all that is left."""
    assert deep("lou", redirect).returncode == 2
    assert deep("--version", redirect).returncode == 2


WARNS = """
import sys, warnings
from types import SimpleNamespace
from deep import cli

def run(args):
    warnings.warn("by a library")
    sys.stderr.write("a line\\n")
    print("half a line", end="", file=sys.stderr, flush=True)
    print("the result")
    if {bug}:
        raise ZeroDivisionError
    return 0

text = "Test.\\n\\nFor instance:\\n\\n  deep test\\n"
cli._command = lambda name: SimpleNamespace(__doc__=text, add_arguments=lambda parser: None, run=run)
sys.exit(cli.main(["fit"]))
"""


@pytest.mark.parametrize("redirect", CANNOT_BE_SAID)
def test_a_warning_that_nobody_can_read_ends_nothing(redirect, deep):
    """Its result is printed, and a bug has Python's status."""
    ran = deep("", redirect, f"-c {shlex.quote(WARNS.format(bug=False))}")
    assert (ran.returncode, ran.stdout) == (0, "the result\n")
    ran = deep("", redirect, f"-c {shlex.quote(WARNS.format(bug=True))}")
    assert (ran.returncode, ran.stdout) == (1, "the result\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_letters_that_the_output_cannot_show_are_escaped(as_json, monkeypatch):
    """As where Windows writes to a file; JSON stays JSON."""
    out, names = io.BytesIO(), {"name": "\N{CJK UNIFIED IDEOGRAPH-5929} \xe7 \N{GRINNING FACE}"}

    def run(args):
        print_result(names, [names["name"]], as_json=as_json)
        return 0

    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out, "ascii"))
    assert ran(run, monkeypatch) == 0
    text = out.getvalue().decode("ascii")
    assert (json.loads(text)["name"] == names["name"]) if as_json else text == "\\u5929 \\xe7 \\U0001f600\n"


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_a_lost_terminal_ends_a_command_as_an_interrupt_does(name, monkeypatch, capsys):
    """A plain kill too; afterwards they do what they did."""
    number = getattr(signal, name)
    before = signal.getsignal(number)

    def run(args):
        signal.raise_signal(number)
        time.sleep(10)
        return 0

    assert ran(run, monkeypatch) == 130
    assert capsys.readouterr().err == "interrupted; nothing was written\n"
    assert signal.getsignal(number) == before


def test_a_lost_terminal_is_ignored_under_nohup(monkeypatch):
    """What is ignored stays ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ran(lambda args: signal.raise_signal(signal.SIGHUP) or 0, monkeypatch) == 0
    finally:
        signal.signal(signal.SIGHUP, before)

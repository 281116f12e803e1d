"""Completion: the script that `deep --completion` prints works in bash; fish and zsh get the same words."""

import shutil
import subprocess

import pytest

from deep.cli import COMMANDS, main


def script(capsys, shell):
    """Return what is printed for a shell."""
    assert main(["--completion", shell]) == 0
    return capsys.readouterr().out


def test_bash_completes_commands_parts_and_options(capsys, tmp_path):
    """A command, a part of it, and the options of either; of a command with a usual part, those of that part."""
    path = tmp_path / "deep.bash"
    path.write_text(script(capsys, "bash"), encoding="utf-8")

    def completed(*words):
        typed = " ".join(f"'{word}'" for word in words)
        run = f'source {path}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _deep; echo "${{COMPREPLY[*]}}"'
        return subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True).stdout.split()

    assert completed("deep", "sc") == ["score"]
    assert set(COMMANDS) <= {*completed("deep", "")}
    assert completed("deep", "fit", "--dec") == ["--decide"]
    assert completed("deep", "data", "ch") == ["check"]
    assert completed("deep", "data", "check", "--js") == ["--json"]
    assert completed("deep", "ask", "claims.csv", "--poo") == ["--pool"]
    assert completed("deep", "fit", "votes") == []  # then bash completes files


def test_the_other_shells_know_the_same_words(capsys):
    """Zsh runs the script of bash; fish has a line for each path of words."""
    bash = script(capsys, "bash")
    assert script(capsys, "zsh").endswith(bash)
    lines = script(capsys, "fish").splitlines()
    (check,) = [line for line in lines if "_from data; and __fish_seen_subcommand_from check'" in line]
    assert "--strict" in check
    assert lines[0].startswith("complete -c deep -n '__fish_use_subcommand' -a 'adapt ask check ")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_it(capsys, tmp_path):
    """The completion of zsh is bound to it."""
    path = tmp_path / "deep.zsh"
    path.write_text(script(capsys, "zsh"), encoding="utf-8")
    words = ["zsh", "-f", "-c", f"source {path}; print ${{_comps[deep]}}"]
    message = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "_deep" in message.stdout


def test_another_shell_is_refused(capsys):
    """In one line, with those that there are."""
    assert main(["--completion", "csh"]) == 2
    assert capsys.readouterr().err == "error: `completion` must be one of bash, fish, zsh. Got 'csh'.\n"

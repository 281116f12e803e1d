"""The way of one text to its P, as docs/walks.md has it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def test_the_page_names_every_file_and_function():
    """No more than a person can follow; `python benchmarks/walk.py --write` brings the page up to date.

    A process of its own: what other tests warmed up is not on the way.
    """
    run = subprocess.run([sys.executable, "benchmarks/walk.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    result = run.stdout[run.stdout.index("<!-- walk -->") :].strip()
    assert result in (ROOT / "docs" / "walks.md").read_text(encoding="utf-8")
    files, functions = map(int, re.findall(r"(\d+) files, (\d+) functions", result)[0])
    assert files <= 14
    assert functions <= 120


@pytest.mark.slow
def test_a_fit_and_the_main_job_pass_through_few_files():
    """A module that is loaded, but not needed for what is asked, counts too."""
    words = [sys.executable, "benchmarks/walk.py", "--all"]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    _, fit, loo = (int(n) for n in re.findall(r": (\d+) files", run.stdout))
    assert fit <= 40
    assert loo <= 70

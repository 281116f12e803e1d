"""The README and the first pages: their Python runs, and their files exist."""

import re
import shlex
from pathlib import Path

from deep.cli import ALIASES, command_parser
from tests.deep_commands import COMMAND_NAMES

ROOT = Path(__file__).resolve().parents[1]

WRITTEN = {"gallery", "reference"}
"""Folders of docs/ that `make docs` writes; it finds dead links to them."""
DOCUMENTS = sorted(
    [
        ROOT / "README.md",
        ROOT / "benchmarks" / "README.md",
        *(path for path in (ROOT / "docs").rglob("*.md") if WRITTEN.isdisjoint(path.parts)),
    ]
)


def test_python_that_is_shown_first_runs(capsys, monkeypatch, tmp_path):
    """From two files to P and a picture in ten lines, and the parts by themselves."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    pages = [ROOT / "docs" / "start.md", ROOT / "docs" / "sklearn.md"]
    blocks = [re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL) for page in pages]
    assert [len(result) for result in blocks] == [1, 2]
    for (*_, code), page in zip(blocks, pages, strict=True):
        assert sum(bool(line.strip()) and not line.startswith(("import", "from")) for line in code.split("\n")) <= 10
        exec(compile(code, page.name, "exec"), {})
    printed = capsys.readouterr().out
    assert re.match(r"Model \(stack\) of 12 judges, fitted on 5 datasets, for any dataset\n", printed)
    assert re.search(r"^4  town-notices .*", printed, re.MULTILINE)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert re.search(r"^ECE 0\.\d+ before, 0\.\d+ after$", printed, re.MULTILINE)


def test_the_first_commands_of_the_readme_are_commands_of_today():
    """With options of today; tests/guests/serve/test_flow_browser.py goes their whole way in a browser."""
    (block,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE)]
    assert [words[:2] for words in lines] == [
        ["deep", name] for name in ("doctor", "ask", "label", "fit", "report", "serve")
    ]
    for _, name, *words in lines:
        command_parser(name).parse(words)


def test_links_lead_somewhere():
    """Every relative link of a document names a file that is there."""
    for document in DOCUMENTS:
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))
        missing = [
            link
            for link in links
            if "://" not in link and WRITTEN.isdisjoint(Path(link).parts) and not (document.parent / link).exists()
        ]
        assert missing == [], document


COMMANDS_SHOWN = re.compile(r"(?:^|`)deep ([a-z][a-z-]+)", re.MULTILINE)


def test_commands_that_are_shown_exist():
    """None is shown under a name of yesterday."""
    for document in DOCUMENTS:
        shown = set(COMMANDS_SHOWN.findall(document.read_text(encoding="utf-8")))
        earlier = ALIASES if "decisions" in document.parts else ()  # they tell what was
        assert shown <= {*COMMAND_NAMES, *earlier}, document

"""The distribution: its name, its version, and the other package of the same import name."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import deep
import deep_judges
from tests.test_bare import imported

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")


def test_the_version_stands_once():
    """The version is that of the package; pyproject reads it from there."""
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    assert f"version: {deep.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


OF_DEVELOPERS = {"browser", "docs", "judges", "local", "mutation", "peers", "test"}
"""Extras of the project's own tests, pages and benchmarks."""


def test_the_page_of_the_install_names_what_there_is():
    """docs/install.md names every extra that a user may want, and the number of mandatory packages."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = "".join(line for line in page.splitlines() if line.startswith("| `deep-judges["))
    assert set(re.findall(r"\[(\w+)\]`", rows)) == set(PROJECT["optional-dependencies"]) - OF_DEVELOPERS
    assert len(PROJECT["dependencies"]) == 14
    assert "Fourteen packages come with it" in page


def test_every_import_is_declared():
    """Each library that deep imports is a dependency or an extra, by the name of a distribution that holds it."""
    extras = PROJECT["optional-dependencies"].values()
    requirements = [*PROJECT["dependencies"], *(requirement for extra in extras for requirement in extra)]
    declared = {re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-") for requirement in requirements}
    holders = metadata.packages_distributions()
    undeclared = {
        name for name in imported() if not {d.lower().replace("_", "-") for d in holders.get(name, [name])} & declared
    }
    assert undeclared == set()


def test_another_package_in_its_place_is_one_line(tmp_path):
    """Where a package `deep` of another project is found, the command says what to do, and exits 2."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "__init__.py").write_text("return `value`\n")
    (tmp_path / "deep-0.10.dist-info").mkdir()
    (tmp_path / "deep-0.10.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: deep\nVersion: 0.10\n")
    (tmp_path / "deep_judges.py").write_text(Path(deep_judges.__file__).read_text(encoding="utf-8"))
    start = [sys.executable, "-c", "import sys, deep_judges; sys.exit(deep_judges.main())"]
    more = {"capture_output": True, "text": True, "cwd": tmp_path, "env": {"PYTHONPATH": str(tmp_path)}}
    result = subprocess.run(start, check=False, **more)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "pip install --force-reinstall deep-judges" in result.stderr
    for redirect in ("2>&-", "2> /dev/full"):
        unread = subprocess.run(["bash", "-c", f'"$@" {redirect}', "bash", *start], check=False, **more)
        assert (unread.returncode, unread.stderr) == (2, "")


def test_a_broken_package_of_our_own_is_not_blamed_on_the_other(monkeypatch):
    """Without the other distribution an import error is passed on."""
    monkeypatch.setitem(sys.modules, "deep.cli", None)
    monkeypatch.setattr(deep_judges, "OTHER", "no-such-distribution")
    with pytest.raises(ImportError):
        deep_judges.main()


def test_the_conda_recipe_asks_for_what_the_wheel_asks():
    """Same version, same commands, same dependencies with the same bounds; matplotlib without its graphical parts."""
    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert f'version = "{deep.__version__}"' in text
    run = re.findall(r"^    - ([\w-]+) (\S+)$", text.partition("  run:\n")[2].partition("\ntest:")[0], re.MULTILINE)
    names = [re.fullmatch(r"([\w-]+)(\S+)", requirement).groups() for requirement in PROJECT["dependencies"]]
    wanted = [("matplotlib-base" if name == "matplotlib" else name, bound) for name, bound in names]
    assert sorted(run) == sorted([*wanted, ("python", PROJECT["requires-python"])])
    assert [f"{name} = {target}" for name, target in PROJECT["scripts"].items()] == re.findall(
        r"^    - (\S+ = \S+)$", text, re.MULTILINE
    )

"""Reports: what is in them, of a run, a model and votes, and that names and texts of others stay text."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from deep.cli import main
from deep.datasets import simulate_votes
from deep.exceptions import InputError
from deep.report import write_report

CHAPTERS = ["headline", "reliability", "methods", "panel", "prior", "watch", "items"]
HOSTILE = "<script>alert(1)</script>"
CLAIM = "<img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Collects the start tags of a page, and the sections' ids."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        """Keep it."""
        self.tags.append((tag, dict(attrs)))


def elements(path):
    """Return the elements of a page."""
    parser = Elements()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser.tags


def chapters(path):
    """Return the anchors of its chapters."""
    return [attrs["id"] for tag, attrs in elements(path) if tag == "section"]


def items(path):
    """Return the data of the item browser."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="items-data">(.*?)</script>', text, re.DOTALL)[1])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return the report of votes whose names and texts try to be markup."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    examples = ["dataset,example_id,source,claim,label"]
    votes = [f'dataset,item_id,label,{HOSTILE},"b ""quoted""",{"x" * 300}']
    for i in range(40):
        label = i % 2
        claim = f"{CLAIM} \u202e{i}" if i else "</script><script>alert(2)</script>"
        examples.append(f"news,<b>{i}</b>,The source {HOSTILE} {i}.,{claim},{label}")
        cast = [str(label) if rng.random() < 0.8 else "" for _ in range(3)]
        votes.append(f"news,<b>{i}</b>,{label},{','.join(cast)}")
    (folder / "claims.csv").write_text("\n".join(examples) + "\n", encoding="utf-8")
    (folder / "votes.csv").write_text("\n".join(votes) + "\n", encoding="utf-8")
    out = folder / "report.html"
    write_report([folder / "votes.csv"], out, examples=folder / "claims.csv")
    return out


def test_names_and_texts_stay_text(hostile):
    """No tag of theirs is a tag of the page, and the policy allows one script, by its hash."""
    found = elements(hostile)
    assert [tag for tag, _ in found].count("script") == 2
    assert not [attrs for tag, attrs in found if any(name.startswith("on") for name in attrs)]
    assert not [tag for tag, _ in found if tag in ("b", "img", "iframe", "object", "embed")]
    policy = next(attrs["content"] for tag, attrs in found if tag == "meta" and "http-equiv" in attrs)
    assert re.search(r"default-src 'none'; .*script-src 'sha256-[\w+/=]{44}'", policy)
    data = items(hostile)
    assert data["voters"][0] == HOSTILE
    assert len(data["voters"][2]) == 300
    assert sum(CLAIM in claim for claim in data["claim"]) == 39


def test_nothing_is_loaded(hostile):
    """No element refers to anything but a part of the page."""
    links = [attrs.get("href") or attrs.get("src") for _, attrs in elements(hostile)]
    assert all(link.startswith(("#", "data:")) for link in links if link is not None)


def test_every_source_has_every_chapter(tmp_path, capsys):
    """A model alone, a model with votes, and votes; the command names the file."""
    votes = simulate_votes(0)
    rows = votes.rows(np.arange(0, len(votes.labels), 10))
    table = tmp_path / "votes.csv"
    head = ",".join(["dataset", "item_id", "label", *rows.voter_names])
    lines = [
        f"{dataset},{item},{label},{','.join(map(str, cast))}".replace("-1", "")
        for dataset, item, label, cast in zip(rows.datasets, rows.example_ids, rows.labels, rows.votes, strict=True)
    ]
    table.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    model, out = tmp_path / "model.json", tmp_path / "report.html"
    assert main(["fit", str(table), "--out", str(model)]) == 0
    for sources in ([model], [model, table], [table]):
        capsys.readouterr()
        assert main(["report", *map(str, sources), "--out", str(out)]) == 0
        assert capsys.readouterr().out == f"report: open {out}\n"
        assert chapters(out) == CHAPTERS
    assert len(items(out)["id"]) == len(rows.labels)


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["a", "b"], "must hold at most one run or model.*Got 2 runs and 0 models"),
        (["empty"], "must be a folder that holds results.json"),
    ],
)
def test_odd_sources_are_refused(tmp_path, names, match):
    """In one line."""
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=match):
        write_report([tmp_path / name for name in names], tmp_path / "report.html")

"""Identify files, list gaps and doubtful values in them, and print the commands to run next.

Nothing is fitted or written. Exit status 1: a file cannot be used unchanged.

For instance:

  deep doctor examples/claims.csv
      claims and their sources: which judges to ask, and what to do next
  deep doctor votes.parquet labels.csv
      whether the labels match the votes by id, and which fits are possible
  deep doctor results.json
      a file of another tool, which `deep data from` can read
"""

import argparse
import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep import console
from deep._util.files import RESULTS
from deep._util.names import listed
from deep._util.options import option
from deep.exceptions import DeepError, ExitStatus

if TYPE_CHECKING:
    from deep.datasets import Examples, Failures
    from deep.records import Example, VoteMatrix

# Below this `deep adapt` does no more than move the share (docs/choose.md).
FEW_LABELS = 20

# Below this two judges agree everywhere by chance too often to be called copies.
FEW_ITEMS = 30

# Ids that a spreadsheet has made of others: a rounded number, a date, an error.
SPREADSHEET_ID = re.compile(
    r"\d(\.\d+)?[Ee]\+\d+|\d{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|#(NAME\?|REF!|N/A)"
)


# `deep fit` leaves out a judge that fails on more of a dataset.
USUAL_RATE = 0.05

# Names of columns that may be people's, whose answers are labels and no votes.
PEOPLE_PATTERN = re.compile(r"human|expert|annotator|crowd|turker|gold", re.IGNORECASE)


@dataclass(frozen=True)
class _Doctor:
    """Options of the command.

    Parameters
    ----------
    files : tuple of str
        Files: claims, votes, labels, models, files of other tools.
    json : bool, default=False
        Print JSON and nothing else.
    """

    files: tuple[str, ...] = option((), "FILE", flags=["files"], nargs="+")
    json: bool = option(False)


def add_arguments(parser: console.CommandParser) -> None:
    """Add the options of the command."""
    # not once at import: `deep --help` imports this module, and topics of options load numpy
    console.adder(_Doctor)(parser)


@dataclass
class Finding:
    """The kind of one file, and sentences on it.

    Parameters
    ----------
    path : Path
        Of the file or folder.
    kind : {'claims', 'folder', 'labels', 'ledger', 'model', 'other tool', 'run', 'unusable', 'votes'}
        What the path is taken for, by its content; 'scores' and 'soft votes' as well.
    facts, missing, careful : list of str
        Sentences: what it holds, what is not there, what may mislead.
    content : object
        The table, model or cards that were read.
    has_classes : bool
        Whether there are labels of both classes, so that judges can be measured.
    can_be_judged : bool
        Whether a row has both a source and a claim.
    options : str
        To be given to `deep data from`.
    soft : str
        The file of soft votes beside the votes.
    ignore : list of str
        Judges that are none.
    one_class : list of str
        Datasets whose labels are of one class, which `deep fit` refuses.
    alike : bool
        Whether no judge distinguishes the items.
    failure_rate : float
        Of the judge that fails least, on the dataset where it fails most.
    """

    path: Path
    kind: str
    facts: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    careful: list[str] = field(default_factory=list)
    content: Any = None
    has_classes: bool = False
    can_be_judged: bool = True
    options: str = ""
    soft: str = ""
    ignore: list[str] = field(default_factory=list)
    one_class: list[str] = field(default_factory=list)
    alike: bool = False
    failure_rate: float = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it without its content, as values of JSON."""
        names = ("kind", "facts", "missing", "careful")
        return {"file": str(self.path)} | {name: getattr(self, name) for name in names}


def run(args: argparse.Namespace) -> int:
    """Look at every file, and report."""
    findings = [examine(Path(name)) for name in args.files]
    _compare(findings)
    commands = list(_commands(findings))
    results = {"files": [one.as_dict() for one in findings], "next": commands}
    console.print_result(console.SCHEMA | results, _lines(findings, commands), as_json=args.json)
    return ExitStatus.FOUND if any(one.kind == "unusable" for one in findings) else ExitStatus.DONE


def _lines(findings: Sequence[Finding], commands: Sequence[str]) -> Iterator[str]:
    for one in findings:
        yield f"{one.path}: {one.kind}"
        yield from (f"  {text}" for text in one.facts)
        yield from (f"  missing: {text}" for text in one.missing)
        yield from (f"  careful: {text}" for text in one.careful)
    yield "next:" if commands else "next: no command can use these files unchanged"
    yield from (f"  {command}" for command in commands)


def examine(path: Path) -> Finding:
    """Return the kind of a file: deep's own kinds first, then those of other tools."""
    if path.is_dir():
        if (path / RESULTS).exists():
            return Finding(path, "run", ["the results of a run of deep"])
        return Finding(path, "folder", ["a folder: give the files in it"])
    if path.name.endswith(".soft.parquet"):
        return Finding(path, "soft votes", ["numbers beside votes: give the file of votes, which lies beside it"])
    head = b""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(1 << 12)
    if head.startswith(b"SQLite format 3"):
        return Finding(path, "ledger", ["a ledger of LLM answers; `deep ask --from-ledger` reads it"])
    try:
        return _model(path, head) or _own_table(path) or _foreign(path)
    except DeepError as error:
        guess = re.search(r"for instance: (--source '(.+)' --claim '(.+)')\.$", str(error))
        if guess is None:
            return Finding(path, "unusable", [str(error)])
        result = _foreign(path, source=guess[2], claim=guess[3])
        result.careful.append(f"by the length of its texts, source is {guess[2]!r} and claim {guess[3]!r}: check that")
        result.options = f" {guess[1]}"
        return result


def _model(path: Path, head: bytes) -> Finding | None:
    if path.suffix != ".json" or b'"deep model"' not in head:
        return None
    from deep import model

    fitted = model.load(path)
    names = fitted.voter_names
    facts = [f"a model of {len(names)} judges, fitted by the method {fitted.method!r}: {listed(names, 6)}"]
    return Finding(path, "model", facts, content=fitted)


def _own_table(path: Path) -> Finding | None:
    """Return the kind of a table in deep's own columns; None where its columns are others'."""
    from deep import datasets
    from deep._util.columns import long_names

    if datasets.ending_of(path) is None or not path.is_file():
        return None
    try:
        columns = datasets.table_columns(path)
    except DeepError:
        return None  # no table, or a broken one, whose first row tells more
    # before the texts, which `--with-texts` writes beside P
    if {"p_consistent", "threshold"} <= {*columns}:
        return Finding(path, "scores", ["P(consistent) of items, as `deep score` writes it"])
    if {"source", "claim"} <= {*columns}:
        return _claims(path, datasets.read_examples(path))
    if "item_id" not in columns and not long_names(columns):
        return None
    # `deep label list` writes P beside an empty label
    voters = {*columns} - {*datasets.VOTE_COLUMNS, "annotator", "p_consistent"}
    if "label" in columns and not voters:
        return _labels(path)
    name = None if "dataset" in columns else path.name.partition(".")[0]
    try:
        votes = datasets.read_votes(path, dataset=name)
    except DeepError as error:
        if str(error).startswith("`votes`"):
            return None  # grades, or texts among the votes: `deep data from` tells them apart
        raise
    result = Finding(path, "votes", content=votes)
    if name is not None:
        result.careful.append(f"no column dataset: all rows are of one, {name!r} (--dataset {shlex.quote(name)})")
    _describe_failures(result, datasets.read_reasons([path], votes), votes.shape[1])
    return _describe_votes(result, votes)


def _labels(path: Path) -> Finding:
    from deep import datasets
    from deep._util.frames import table_defaults

    with table_defaults(None if "dataset" in datasets.table_columns(path) else path.name.partition(".")[0]):
        table = datasets.read_labels(path)
    result = Finding(path, "labels", [f"{len(table.labels):,} labels"], content=table)
    _describe_rows(result, table.labels, table.datasets, table.item_ids)
    return result


def _claims(path: Path, examples: "Examples") -> Finding:
    """Describe a file of claims and their sources."""
    from deep import datasets

    n = examples.check()
    rows = list(examples)
    cards = datasets.describe_examples(examples)
    result = Finding(path, "claims", [f"{n:,} claims, datasets: {listed([card.dataset for card in cards])}"])
    result.content = cards
    without = sum(not one.has_texts for one in rows)
    if without:
        result.careful.append(f"{without:,} rows have no source or no claim, and are not judged")
    sources = {one.source for one in rows if one.source}
    if len(sources) == 1 and n > 1:
        result.careful.append("all claims share one source, so nothing shows how judges do on others")
    if twice := n - len({(one.source, one.claim) for one in rows}):
        result.careful.append(f"{twice:,} claims occur more than once with the same source")
    _describe_examples(result, rows)
    return result


def _foreign(path: Path, **options: Any) -> Finding:
    """Describe a file of another tool, as `deep data from` reads it."""
    from deep.datasets import Failures
    from deep.integrations.foreign import ForeignOptions, read_foreign

    read = read_foreign([path], ForeignOptions(**options))
    result = Finding(path, "other tool", [f"{', '.join(read.titles)}: {len(read.examples):,} items"], content=read)
    result.facts += [note for note in read.notes if not note.startswith("Left out")]
    result.careful += [note for note in read.notes if note.startswith("Left out")]
    if read.voters:
        votes = read.votes()
        reasons: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for example, row in zip(read.examples, read.judgments, strict=True):
            for name, one in row.items():
                reasons[name, str(example.dataset)][str(one.reason)] += one.reason is not None
        n_items = Counter(str(example.dataset) for example in read.examples)
        failures = [Failures(name, of, n_items[of], dict(counts)) for (name, of), counts in reasons.items()]
        _describe_failures(result, failures, len(read.voters))
        return _describe_votes(result, votes)
    result.missing.append("answers of judges")
    result.can_be_judged = any(one.has_texts for one in read.examples)
    if not result.can_be_judged:
        result.missing.append("no source for any claim: name its column (`deep data from --source`)")
    _describe_examples(result, read.examples)
    return result


def _describe_votes(finding: Finding, votes: "VoteMatrix") -> Finding:
    """Describe answers: how many of whom, and judges that tell nothing or tell it twice."""
    from deep._util.scales import scale_sentence
    from deep.datasets import file_beside

    n, k = votes.shape
    finding.facts.append(f"{n:,} items, {k} judge{'s' if k > 1 else ''}: {listed(votes.voter_names, 6)}")
    if (soft := file_beside(finding.path, "soft")).exists():
        finding.soft = str(soft)
        finding.facts.append(f"soft votes of the judges lie in {soft.name}")
    scales = scale_sentence(votes.voter_names, votes.scales) if votes.scales else ""
    finding.facts += [scales] if scales and scales not in finding.facts else []
    finding.facts.append(f"datasets: {listed([f'{d} ({(votes.datasets == d).sum():,})' for d in votes.dataset_names])}")
    if k == 1:
        finding.missing.append("a second judge: with only one, deep can calibrate its answers but not improve them")
    _describe_judges(finding, votes)
    if votes.document_ids is not None and len({*votes.document_ids}) == 1 and n > 1:
        finding.careful.append("all items share one document, so nothing shows how judges do on others")
    if n < FEW_ITEMS:
        finding.careful.append(f"{n} items: intervals will be wide, and judges hard to rank")
    _describe_rows(finding, votes.labels, votes.datasets, votes.item_ids)
    return finding


def _describe_judges(finding: Finding, votes: "VoteMatrix") -> None:
    """Say which judges tell nothing, or tell it twice."""
    from deep import evaluate

    columns = dict(zip(votes.voter_names, votes.answers_or_votes.T, strict=True))
    silent = [name for name, column in columns.items() if not (column >= 0).any()]
    if silent:
        finding.careful.append(f"no vote at all: {listed(silent)}")
    for sentence in evaluate.constant_judges(votes):
        finding.alike |= sentence == evaluate.NO_JUDGE_DISTINGUISHES
        (finding.missing if finding.alike else finding.careful).append(sentence)
    same = defaultdict(list)
    for name, column in columns.items():
        if (column >= 0).sum() >= FEW_ITEMS and len({*column[column >= 0].tolist()}) > 1:
            same[column.tobytes()].append(name)
    for names in filter(lambda names: len(names) > 1, same.values()):
        finding.careful.append(f"identical columns, which count as one judge: {listed(names)}")
    for name, column in columns.items():
        both = (column >= 0) & (votes.labels >= 0)
        if both.sum() >= FEW_ITEMS and (column[both] == votes.labels[both]).all():
            finding.careful.append(
                f"{name} equals the label on every item: if it is the label, leave it out (--ignore)"
            )
            finding.ignore.append(name)
    people = [name for name in votes.voter_names if PEOPLE_PATTERN.search(name)]
    if people and len(people) < len(votes.voter_names):
        finding.careful.append(f"named like people, not judges: {listed(people)}. Use --label NAME or --ignore NAME")


def _describe_failures(finding: Finding, failures: "Sequence[Failures]", n_judges: int) -> None:
    """Say which judges fail often; where all do, a fit has to be told that it may take them."""
    from deep.datasets import worst_failures

    worst = worst_failures(failures)
    often = [
        f"{name} ({console.percent(one.rate)} of {one.dataset})" for name, one in worst.items() if one.rate > USUAL_RATE
    ]
    if often:
        finding.careful.append(f"no usable answer from {listed(often)}: the remaining items may not be representative")
    if len(often) == n_judges:
        finding.failure_rate = min(one.rate for one in worst.values())


def _describe_examples(finding: Finding, examples: "Sequence[Example]") -> None:
    labels = [-1 if one.label is None else one.label for one in examples]
    _describe_rows(finding, labels, [str(one.dataset) for one in examples], [one.example_id for one in examples])


def _describe_rows(finding: Finding, labels: Iterable[int], names: Iterable[str], ids: Iterable[str]) -> None:
    """Say which ids look changed, how many labels there are of each class, and what they do not allow."""
    changed = [str(name) for name in ids if SPREADSHEET_ID.fullmatch(str(name))]
    if changed:
        finding.careful.append(
            f"{len(changed):,} ids may have been changed by a spreadsheet ({listed(changed, 3)}). They match no "
            "others, and several may now be equal"
        )
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for label, name in zip(labels, names, strict=True):
        if label >= 0:
            counts[str(name)][int(label)] += 1
    if not counts:
        if finding.alike:  # labels tell nothing about claims that no judge tells apart
            return
        finding.missing.append("labels: without them P comes from agreement alone; thirty help most (`deep label`)")
        return
    finding.has_classes = any(n[0] and n[1] for n in counts.values())
    parts = [f"{name} {n[1]:,} consistent, {n[0]:,} not" for name, n in counts.items()]
    finding.facts.append(f"labels: {listed(parts)}")
    one_class = finding.one_class = [name for name, n in counts.items() if not n[0] or not n[1]]
    if one_class:
        finding.careful.append(f"labels of only one class in {listed(one_class)}: judges cannot be measured there")
    if len(one_class) == len(counts):
        finding.missing.append("labels of the other class")
    elif len(counts) == 1 and not finding.alike and finding.kind != "labels":
        finding.missing.append("a second labeled dataset, to show how P does on unlabeled data")
    few = [name for name, n in counts.items() if n.total() < FEW_LABELS and name not in one_class]
    if few:
        finding.careful.append(
            f"fewer than {FEW_LABELS} labels in {listed(few)}: these reveal only large errors of a model"
        )


def _compare(findings: Sequence[Finding]) -> None:
    """Say of labels beside votes how many are of an item that has votes."""
    import numpy as np

    votes = [one.content for one in findings if one.kind == "votes"]
    for one in (one for one in findings if one.kind == "labels"):
        if not votes:
            one.missing.append("votes of judges on these items: give both files")
            continue
        vote_ids = {str(item) for table in votes for item in table.item_ids}
        ids = np.array([item for item in one.content.item_ids if str(item) not in vote_ids], dtype=object)
        one.facts.append(f"{len(one.content.labels) - len(ids):,} of them match items with votes")
        if len(ids):
            loose = {item.lstrip("0").removesuffix(".0"): item for item in vote_ids}
            first = next((i for i in ids if str(i).lstrip("0").removesuffix(".0") in loose), None)
            like = "" if first is None else f"; {first!r} may be {loose[str(first).lstrip('0').removesuffix('.0')]!r}"
            one.careful.append(f"{len(ids):,} labels are of items without votes{like}")
            if len(ids) == len(one.content.labels):
                one.kind = "unusable"


def _commands(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield commands that run on these files, in order: each is given what the one before has written."""
    by_kind: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        by_kind[one.kind].append(one)
    yield from (f"deep report {_quoted(one.path)}" for one in by_kind["run"])
    yield from (f"deep ask report {_quoted(one.path)}" for one in by_kind["ledger"])
    tables, has_classes = [one.path for one in by_kind["votes"]], False
    for one in findings:
        stem = one.path.name.lstrip(".").partition(".")[0]
        # Never a table that is there: its votes may have been paid for.
        names = (Path(f"{stem}{n}.votes.parquet") for n in ("", *map("-{}".format, range(2, 10_000))))
        out = next(name for name in names if name not in tables and not name.exists())
        if one.kind == "other tool":
            yield f"deep data from {_quoted(one.path)}{one.options} --out {_quoted(out)}"
            one.soft = str(out.with_suffix(".soft.parquet")) if one.content.soft else ""
        texts = out.with_suffix(".examples.jsonl") if one.kind == "other tool" else one.path
        if one.kind == "claims" or (one.kind == "other tool" and not one.content.voters and one.can_be_judged):
            yield f"deep ask {_quoted(texts)} --lexical all --out {_quoted(out)}"
        if one.kind == "claims" or (one.kind == "other tool" and (one.content.voters or one.can_be_judged)):
            tables.append(out)
        has_classes |= one.has_classes and one.kind != "unusable"
    if tables:
        yield from _table_commands(findings, tables, has_classes=has_classes)
        return
    for one in by_kind["model"]:
        yield f"deep report {_quoted(one.path)} --out {_quoted(one.path.with_suffix('.html'))}"


def _table_commands(findings: Sequence[Finding], tables: Sequence[Path], *, has_classes: bool) -> Iterator[str]:
    """Yield the commands for tables of answers, with the labels and the model that stand beside them."""
    votes = [one for one in findings if one.kind == "votes"]
    unnamed = [one.path for one in votes if any("no column dataset" in text for text in one.careful)]
    options = f" --dataset {shlex.quote(unnamed[0].name.partition('.')[0])}" if unnamed else ""
    paths = " ".join(map(_quoted, tables))
    labels = "".join(f" --labels {_quoted(one.path)}" for one in findings if one.kind == "labels")
    stem = tables[0].name.partition(".")[0]
    voters = {name for one in votes for name in one.content.voter_names}
    for one in findings:
        if one.kind == "model" and {*one.content.voter_names} <= voters:
            yield f"deep check {_quoted(one.path)} --votes {paths}{labels}{options}"
            yield f"deep report {_quoted(one.path)} {paths}{labels}{options} --out {_quoted(Path(f'{stem}.html'))}"
            return
    ignored = "".join(f" --ignore {shlex.quote(name)}" for one in findings for name in one.ignore)
    if has_classes:
        yield f"deep panel {paths}{labels}{options}{ignored}"
    yield f"deep report {paths}{labels}{options} --out {_quoted(Path(f'{stem}.html'))}"
    # A dataset with labels of one class teaches nothing, and `deep fit` says so.
    left_out = [name for one in findings for name in one.one_class]
    excluded = "".join(f" --exclude {shlex.quote(name)}" for name in left_out)
    rate = max(one.failure_rate for one in findings)
    excluded += f" --max-failure-rate {math.ceil(100 * rate) / 100:g}" if rate else ""
    excluded += "".join(f" --scores {shlex.quote(one.soft)}" for one in findings if one.soft)
    if (has_classes or not left_out) and not any(one.alike for one in findings):
        yield f"deep fit {paths}{labels}{options}{ignored}{excluded} --out {_quoted(Path(f'{stem}.model.json'))}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))

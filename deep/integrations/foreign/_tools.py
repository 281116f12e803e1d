"""Read the file of another tool: its texts, the answers of its judges as votes and grades, its labels.

For instance:

  deep data from results.json --out votes.parquet
      of promptfoo, DeepEval, lm-eval, Ragas, Langfuse, LangSmith, Inspect, the Batch API, Prodigy, doccano,
      Label Studio, Argilla or Mechanical Turk; `deep report votes.parquet` is next
  deep data from run.eval --label human --out votes.parquet
      the judge `human` is right: its answers are the labels
  deep data from mine.csv --source article --claim summary --judges gpt claude --label ok --out votes.parquet
      a table whose columns have other names
"""

import argparse
import ast
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from deep import console, datasets
from deep._util.columns import VOTE_OF_TEXT
from deep._util.files import read_asset, read_bytes
from deep._util.names import listed
from deep._util.options import option, topic_values
from deep.datasets import FileRow
from deep.exceptions import ExitStatus, InputError, needs_extra
from deep.records import Judgment

# The shape of each tool's file. Its paths are the keys that `flatten` gives, so that no language of paths is needed:
# the libraries that have one would be a fifteenth mandatory package, or an extra that a newcomer's first command lacks.
_TABLES = read_asset(__package__, "tools.toml")
# Words for yes where a setting is a text.
_TRUE = ("true", "1", "on", "yes")

# The names that a column usually has, by what it holds.
ROLES: Mapping[str, Sequence[str]] = _TABLES["usual"]["roles"]

# Names of columns of numbers that are no answers.
NO_JUDGE = re.compile(
    r"cost|price|latency|token|time|duration|seconds|seed|index|idx|length|count|split|fold|year|rank|(^|_)(n|id|no)$",
    re.IGNORECASE,
)

# Names of the only column of answers of a table where it is no judge's, but says what is right.
LABEL_LIKE = re.compile(r"(^|_)(label|gold|human|truth|is_\w+)(_|$)", re.IGNORECASE)

# The highest grade of a column that nobody has named as a judge.
MAX_GRADE = 10

# Records in which a path is looked for that one of them lacks.
N_LOOKED_AT = 100

# Objects in each other that a record is looked into; no path goes further.
MAX_NESTING = 20

# A column with more different texts, or longer ones, holds remarks and no answers.
FEW_ANSWERS, SHORT_ANSWER = 20, 60


class ForeignAnswer(NamedTuple):
    """The answer of one judge on an item: a verdict, a number beside it, words, an error; or a judgment as it is."""

    judge: str
    value: object = None
    grade: object = None
    why: object = None
    failed: object = None
    judgment: Judgment | None = None


@dataclass
class ForeignItem:
    """One item of a file of another tool.

    Parameters
    ----------
    dataset, item, document : str
        The ids of its dataset, its own, and that of its source, None where the file has none.
    texts : dict of str to str
        Source, claim and question, by these names.
    label, answers
        The label and the answers of all judges, as they stand in the file.
    failed, people : bool
        Whether an error kept all of it from being judged; whether its judges are people.
    """

    dataset: str
    item: str | None
    document: str | None
    texts: dict[str, str]
    label: object = None
    answers: list[ForeignAnswer] = field(default_factory=list)
    failed: bool = False
    people: bool = False


@dataclass(frozen=True)
class ForeignOptions:
    """The contents of a file of another tool, where it does not say so itself.

    Parameters
    ----------
    source : str, optional
        Column or dotted path of the source.
    claim : str, optional
        Column or dotted path of the text to check.
    question : str, optional
        Column or dotted path of the question that the claim answers.
    label : str, optional
        The label: a column, or the judge to treat as correct.
    item : str, optional
        The id of an item.
    judges : tuple of str
        The columns that are judges; default: those that hold answers.
    ignore : tuple of str
        Judges to leave out.
    answer : str, optional
        Which question's answers to read, if people answered several.
    yes : tuple of str
        Words that mean consistent.
    no : tuple of str
        Words that mean inconsistent.
    none : tuple of str
        Words that count as no answer.
    from_grade : float, optional
        The lowest grade that counts as consistent; for numbers in [0, 1] the default is 0.5.
    scale : tuple of str
        Scales of judges that give grades, by name or pattern: 'gpt-*=1-5', 'bleu=0-100', 'x=-5..0', 'y=5-1' where 5 is
        the worst. Default: by their values.
    dataset : str, optional
        The name of the dataset; default: the file's.
    """

    source: str | None = option(None, "COLUMN")
    claim: str | None = option(None, "COLUMN")
    question: str | None = option(None, "COLUMN")
    label: str | None = option(None, "NAME")
    item: str | None = option(None, "COLUMN")
    judges: tuple[str, ...] = option((), "COLUMN")
    ignore: tuple[str, ...] = option((), "NAME")
    answer: str | None = option(None, "NAME")
    yes: tuple[str, ...] = option((), "WORD")
    no: tuple[str, ...] = option((), "WORD")
    none: tuple[str, ...] = option((), "WORD")
    from_grade: float | None = option(None, "GRADE")
    scale: tuple[str, ...] = option((), "NAME=SCALE")
    dataset: str | None = option(None, "NAME")

    @property
    def columns(self) -> dict[str, str]:
        """The columns that were named, by role."""
        roles = ("source", "claim", "question", "item")
        return {role: getattr(self, role) for role in roles if getattr(self, role) is not None}

    def words(self, tool: "Tool") -> dict[str, int]:
        """Return the words that are answers, in lower case, and what each means."""
        votes = {word: vote for vote, words in ((1, self.yes), (0, self.no), (-1, self.none)) for word in words}
        vote_of = {**VOTE_OF_TEXT, **_TABLES["usual"]["verdicts"], **tool.words, **votes}
        return {word.strip().lower(): vote for word, vote in vote_of.items()}


@dataclass(frozen=True)
class Tool:
    """One kind of file, as ``tools.toml`` describes it; the head of that file says what each field holds.

    `name` is the key of its table, `title` what people call the tool.
    """

    name: str
    title: str
    needs: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    file: str = ""
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    lower: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    people: bool = False

    @property
    def is_long(self) -> bool:
        """Whether a record is one answer, so that those of an item belong together."""
        return not {"at", "prefix", "rest", "flat"} & {*self.answers}

    def fits(self, records: Sequence[FileRow]) -> bool:
        """Return whether one of the first records has all that this kind needs."""
        return any(all(_has(fields, need) for need in self.needs) for fields in map(flatten, records[:N_LOOKED_AT]))


# A file of rows that is no other tool's; which column is what, its names or the user say.
PLAIN_TABLE = Tool("table", "a table", answers={"rest": True})


@cache
def tools() -> tuple[Tool, ...]:
    """Return the kinds of files that are known, in the order in which they are tried."""
    return tuple(Tool(name, **row) for name, row in _TABLES.items() if name != "usual")


def flatten(record: FileRow) -> dict[str, Any]:
    """Return all that stands in a record by dotted path, objects and lists themselves too.

    Examples
    --------
    >>> from deep.integrations.foreign._tools import flatten
    >>> list(flatten({"a": {"b": [1, 2]}}))
    ['a', 'a.b', 'a.b.0', 'a.b.1']
    """
    return dict(_inner(record, ""))


def _inner(value: object, prefix: str) -> Iterator[tuple[str, Any]]:
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, inner in parts:
        yield f"{prefix}{key}", inner
        if prefix.count(".") < MAX_NESTING:
            yield from _inner(inner, f"{prefix}{key}.")


def is_empty(value: object) -> bool:
    """Return whether a cell holds nothing: none, NaN, no text, an empty list."""
    return value is None or value != value or (isinstance(value, str | list | tuple | dict) and not value)


def first_of(known: Mapping[str, Any], paths: Iterable[str]) -> Any:
    """Return the value at the first path that has something; None where none has."""
    for path in paths:
        parts = [known.get(part) for part in ([path] if path in known else path.split("+"))]
        values = [part for part in parts if not is_empty(part)]
        if values:
            return values[0] if "+" not in path else "-".join(map(str, values))
    return None


def _spelled(paths: Iterable[str]) -> Iterator[str]:
    """Yield paths, each that says ``$source`` once for every usual name of a source."""
    for path in paths:
        role = path.rpartition("$")[2]
        yield from [path.replace(f"${role}", name) for name in ROLES[role]] if role in ROLES else [path]


def _has(fields: Mapping[str, Any], need: str) -> bool:
    return any(
        any(key.startswith(path[:-1]) for key in fields) if path.endswith("*") else path in fields
        for path in need.split("|")
    )


def text_of(value: object) -> str:
    r"""Return a text: a list of texts or of messages as paragraphs; nothing of what holds none.

    Examples
    --------
    >>> from deep.integrations.foreign._tools import text_of
    >>> text_of(["It rained.", "It snowed."]), text_of([{"role": "user", "content": "Hi"}]), text_of(None)
    ('It rained.\n\nIt snowed.', 'Hi', '')
    """
    if isinstance(value, list | tuple):
        return "\n\n".join(filter(None, map(text_of, value)))
    if isinstance(value, Mapping):
        return text_of(next((value[key] for key in ("content", "text", "page_content") if key in value), None))
    return "" if is_empty(value) else str(value).replace("\0", "")


def load(path: Path) -> list[FileRow] | FileRow:
    """Return the records of a file; the object of a JSON file that is one.

    Raises
    ------
    InputError
        It is not there, has another ending, or cannot be read.
    """
    if path.suffix == ".eval":
        return _inspect_samples(path)
    ending = datasets.ending_of(path)
    if path.is_file() and not path.stat().st_size:
        raise InputError(f"`files` must be files that are not empty. Got {str(path)!r}.")
    if not path.is_file() or ending is None:
        why = "which is not there" if not path.exists() else "a folder" if path.is_dir() else "another kind of file"
        raise InputError(f"`files` must be files that end in .eval, {', '.join(ENDINGS)}. Got {str(path)!r}, {why}.")
    if ending == ".json":
        try:
            result = json.loads(read_bytes(path, "files"))
        except (ValueError, RecursionError):
            result = None  # an object a line, or broken, as reading it so will say
        if isinstance(result, dict):
            return result
    if ending == ".parquet":
        return _parquet_rows(path)
    rows = [row for _, row in datasets.read_rows(path, (), param="files")]
    return [{key: _nested(cell) for key, cell in row.items()} for row in rows] if "csv" in ending else rows


ENDINGS = (".csv", ".json", ".jsonl", ".ndjson", ".parquet")


def _nested(cell: object) -> object:
    """Return the list or object whose text stands in a cell of CSV, as JSON or as Python writes it."""
    if isinstance(cell, str) and cell[:1] in ("[", "{"):
        for read in (json.loads, ast.literal_eval):
            try:
                return read(cell)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return cell


def _parquet_rows(path: Path) -> list[FileRow]:
    """Return the rows of a Parquet file; a class of Hugging Face's is its name, not its number."""
    with datasets.open_parquet(path, "files") as table:
        names = table.names
        metadata = (table.file.schema_arrow.metadata or {}).get(b"huggingface")
    features = json.loads(metadata)["info"]["features"] if metadata else {}
    classes = {name: one["names"] for name, one in features.items() if isinstance(one, dict) and "names" in one}
    rows: list[FileRow] = []
    for _, row in datasets.read_rows(path, names, param="files"):
        texts = {key: dict[Any, str](enumerate(words)).get(row.get(key)) for key, words in classes.items()}
        rows.append({**row, **texts})
    return rows


def _inspect_samples(path: Path) -> FileRow:
    """Return an ``.eval`` log of Inspect as its JSON log has it; only Inspect reads the compressed form."""
    with needs_extra("inspect"):
        from inspect_ai.log import read_eval_log, read_eval_log_samples
    try:
        head = read_eval_log(path, header_only=True)
        samples = read_eval_log_samples(path, all_samples_required=False)
        fields = {"id", "epoch", "target", "input", "metadata", "output", "scores", "error"}
        rows = [json.loads(sample.model_dump_json(include=fields)) for sample in samples]
    except Exception as error:  # of zip, JSON, pydantic or a file system, as the log has it
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"`files` must be logs of Inspect. Got {str(path)!r}: {message}.") from None
    return {"eval": json.loads(head.eval.model_dump_json()), "samples": rows}


def recognise(loaded: list[FileRow] | FileRow) -> tuple[Tool, list[FileRow]] | None:
    """Return the kind of a file and its records; None where it is no known kind and no table."""
    for tool in tools():
        for records in _candidates(loaded, tool.records):
            if records and tool.fits(records):
                return tool, records
    return (PLAIN_TABLE, loaded) if isinstance(loaded, list) and loaded else None


def _candidates(loaded: list[FileRow] | FileRow, paths: Sequence[str]) -> Iterator[list[FileRow]]:
    if isinstance(loaded, list):
        yield loaded
        return
    for path in paths:
        result: Any = loaded
        for key in path.split("."):
            result = result.get(key) if isinstance(result, Mapping) else None
        if isinstance(result, list):
            yield [one for one in result if isinstance(one, Mapping)]
    yield [loaded]


def answers_in(tool: Tool, known: Mapping[str, Any], question: str | None, person: str) -> Iterator[ForeignAnswer]:
    """Yield the answers that stand in one record.

    Parameters
    ----------
    tool : Tool
        The tool that wrote the record; it says where the answers stand.
    known : mapping
        The record, as `flatten` has it.
    question : str, optional
        The question that `--answer` names, where a file holds several.
    person : str
        Who answered, where the record does not say.
    """
    how = tool.answers
    if tool.is_long:
        yield from _answer(tool, known, first_of(known, how.get("judge", ())) or person, question)
    elif "flat" in how:
        column = f"{question}{how['flat']}"
        statuses = known.get(f"{column}.status") or ["submitted"] * len(known.get(column) or ())
        for who, value, status in zip(
            known.get(f"{column}.users") or (), known.get(column) or (), statuses, strict=False
        ):
            if status == "submitted":
                yield ForeignAnswer(str(who), value)
    for path in how.get("at", "").replace("$answer", question or "").split("|"):
        inside = known.get(path)
        parts = inside.items() if isinstance(inside, Mapping) else ((None, one) for one in inside or ())
        for judge, part in parts:
            inner = flatten(part if isinstance(part, Mapping) else {"value": part})
            yield from _answer(tool, inner, judge or first_of(inner, how["judge"]) or person, question)
    if "prefix" in how:
        at = len(how["prefix"])
        yield from (ForeignAnswer(key[at:], value) for key, value in known.items() if key.startswith(how["prefix"]))


def _answer(tool: Tool, fields: Mapping[str, Any], judge: object, question: str | None) -> Iterator[ForeignAnswer]:
    """Yield the answer that stands in a record or in a part of one; none where it is to be skipped."""
    how = tool.answers
    if any(fields.get(path) in values for path, values in how.get("skip", {}).items()):
        return
    if question and "pick" in how:
        where, _, key = how["pick"].partition(".")
        fields = flatten({**fields, where: [one for one in fields.get(where) or () if one.get(key) == question]})
    values = [path.replace("$answer", question or "") for path in how.get("value", ())]
    value, grade, why, failed = (
        first_of(fields, values) if name == "value" else first_of(fields, how.get(name, ()))
        for name in ("value", "grade", "why", "failed")
    )
    if value is None and "$answer" in "".join(how.get("value", ())):  # a column for each choice, true where it is taken
        start = f"{values[0]}."
        keys = (k for k, cell in fields.items() if k.startswith(start) and str(cell).strip().lower() in _TRUE)
        value = next((k[len(start) :] for k in keys), None)
    if isinstance(value, Mapping) and not tool.people:  # several values of one score are a judge each
        yield from (ForeignAnswer(f"{judge}.{key}", one, None, why, failed) for key, one in value.items())
    else:
        yield ForeignAnswer(str(judge), value, grade, why, failed)


def question_of(tool: Tool, records: Sequence[FileRow], question: str | None) -> str | None:
    """Return the question whose answers are read: the one given, or the only one.

    Raises
    ------
    InputError
        There are several and none is given, or the one given is not there.
    """
    how = tool.answers
    paths = [path for path in (*how.get("value", ()), how.get("at", "")) if "$answer" in path]
    if not paths and "flat" not in how and "pick" not in how:
        return question
    names: Counter[str] = Counter()
    for record in records:
        fields = flatten(record)
        if "pick" in how:
            where, _, key = how["pick"].partition(".")
            parts = (part for one in fields.get(how["at"]) or () for part in one.get(where) or ())
            names.update(str(part[key]) for part in parts if key in part)
        elif "flat" in how:
            names.update(key.removesuffix(how["flat"]) for key in fields if key.endswith(how["flat"]))
        elif start := paths[0].partition("$")[0]:
            names.update({key[len(start) :].partition(".")[0] for key in fields if key.startswith(start)})
        else:
            names.update(key for key in record if key not in how["known"])
    if "pick" not in how and paths and not paths[0].partition("$")[0]:
        names = Counter({name: n for name, n in names.items() if _is_answer_column(records, name)})
    if question in names or (question is None and len(names) == 1):
        return question or next(iter(names))
    if not names:
        return question
    raise InputError(
        f"`answer` must name the question whose answers are read, one of {', '.join(map(repr, sorted(names)))}. "
        f"Got {question!r}."
    )


def _is_answer_column(records: Sequence[FileRow], name: str) -> bool:
    cells = [str(record[name]) for record in records if not is_empty(record.get(name))]
    usual = {role_name for names in ROLES.values() for role_name in names} - {*ROLES["label"]}
    is_few = 0 < len(set(cells)) <= FEW_ANSWERS and max(map(len, cells)) <= SHORT_ANSWER
    return is_few and name not in usual


def is_answer(value: object, words: Mapping[str, int]) -> bool:
    """Return whether a cell can be an answer: a number, true or false, a word for one, or a list of one of these."""
    if isinstance(value, list | tuple):
        return len(value) > 0 and all(is_answer(one, words) for one in value)
    if isinstance(value, str):
        return value.strip().lower() in words or value.strip().lower() in VOTE_OF_TEXT or number_in(value) is not None
    return isinstance(value, int | float)


def number_in(value: object) -> float | None:
    """Return the number that a cell is, written as text too; None where it is none."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and abs(value) < 1e15 else None


def judge_columns(records: Sequence[FileRow], left_out: Iterable[str], words: Mapping[str, int]) -> list[str]:
    """Return the columns whose cells are all answers, but for those left out and those whose name says otherwise."""
    out = {*left_out}
    names = dict.fromkeys(key for record in records for key in record)
    filled = {name: [r[name] for r in records if not is_empty(r.get(name))] for name in names if name not in out}
    return [
        name
        for name, cells in filled.items()
        if cells and not NO_JUDGE.search(name) and all(is_answer(cell, words) for cell in cells) and not _counts(cells)
    ]


def _counts(cells: Sequence[object]) -> bool:
    """Return whether the cells of a column number its rows, or are above all grades: ids, amounts, years."""
    numbers = [number_in(cell) for cell in cells]
    rows = [*range(len(numbers) + 1)]
    return any(number is not None and number > MAX_GRADE for number in numbers) or (
        len(numbers) > 2 and numbers in (rows[:-1], rows[1:])
    )


def column_roles(records: Sequence[FileRow], choices: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each role that is known: as given, else by its usual name.

    Raises
    ------
    InputError
        A column that was given is not there.
    """
    columns = dict.fromkeys(key for record in records[:N_LOOKED_AT] for key in record)
    for role, name in choices.items():
        if name not in columns:
            raise InputError(f"`{role}` must be a column: {listed(list(columns), 12)}. Got {name!r}.")
    by_name = {column.strip().casefold().replace(" ", "_"): column for column in reversed(columns)}
    guesses = {role: next((by_name[name] for name in names if name in by_name), "") for role, names in ROLES.items()}
    return {role: name for role, name in {**guesses, **choices}.items() if name}


def suggested_roles(records: Sequence[FileRow]) -> dict[str, str]:
    """Return the columns that look like a source and a claim, by how long their texts are."""
    lengths = {
        name: sum(len(text_of(record.get(name))) for record in records) / len(records)
        for name in dict.fromkeys(key for record in records for key in record)
    }
    texts = sorted((name for name, n in lengths.items() if n >= SHORT_ANSWER / 3), key=lambda name: -lengths[name])
    return dict(zip(("source", "claim"), texts, strict=False))


@dataclass(frozen=True)
class _Files:
    """Options of the command.

    Parameters
    ----------
    files : tuple of str
        Files of other tools; of Inspect also folders of logs.
    out : Path, optional
        Votes: .parquet; default: FILE.votes.parquet. Texts go beside it, to NAME.examples.jsonl.
    """

    files: tuple[str, ...] = option((), "FILE", flags=["files"], nargs="+")
    out: Path | None = option(None, "VOTES.parquet")


add_arguments = console.adder(_Files, ForeignOptions)


def run(args: argparse.Namespace) -> int:
    """Read, write and report."""
    from deep.integrations.foreign import read_foreign

    files = list[Path]()
    for path in map(Path, args.files):
        logs = sorted(p for p in path.rglob("*") if p.suffix in (".eval", ".json")) if path.is_dir() else [path]
        if not logs:
            raise InputError(f"`files` must be files, or folders of logs of Inspect. Got {str(path)!r} without any.")
        files += logs
    out = args.out or Path(f"{files[0].name.lstrip('.').partition('.')[0]}.votes.parquet")
    result = read_foreign(files, ForeignOptions(**topic_values(ForeignOptions, args)))
    paths = result.write(out)
    items = Counter(str(one.dataset) for one in result.examples)
    reasons = Counter(sorted(str(one.reason) for row in result.judgments for one in row.values()))
    results: dict[str, Any] = {
        "kinds": list(result.titles),
        "items": items,
        "voters": list(result.voters),
        "graders": list(result.scales),
        "labels": sum(one.label is not None for one in result.examples),
        "votes": reasons.pop("None", 0),
        "reasons": reasons,
        "notes": list(result.notes),
        "files": [str(path) for path in paths],
        "next": _next(result.voters, paths, args.scale),
    }
    lines = [", ".join(result.titles)]
    lines += [f"{name}: {n} items" for name, n in items.items()]
    answers = f"{results['votes']} answers of {', '.join(result.voters)}" if result.voters else "no answers"
    lines += [f"{answers}, {results['labels']} items labeled"]
    lines += [f"{n} missing: {reason}" for reason, n in reasons.items()]
    lines += [*result.notes, *(f"written: {path}" for path in paths), f"next: {results['next']}"]
    console.print_result(console.SCHEMA | results, lines, as_json=args.json)
    return ExitStatus.DONE


def _next(voters: tuple[str, ...], paths: list[Path], scales: tuple[str, ...]) -> str:
    """Return the command that is next: a report of answers, or votes on texts that have none."""
    name, out = shlex.quote(str(paths[0])), paths[0]
    if voters:
        # A table holds numbers, and no scale of them.
        declared = f" --scale {shlex.join(scales)}" if scales else ""
        return f"deep report {name} --out {shlex.quote(str(out.with_suffix('.html')))}{declared}"
    return f"deep ask {name} --lexical all --out {shlex.quote(str(out.with_suffix('.parquet')))}"

"""Read files of other tools: items with their texts, answers as votes and grades, labels; and write deep's tables."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from deep import asking, datasets
from deep._util.columns import VOTE_OF_TEXT
from deep._util.files import atomic_file, check_out
from deep._util.frames import SCALES, table_defaults
from deep._util.names import check_name, intended_column, is_storable, listed
from deep._util.scales import BINARY, VOTE_THRESHOLD, UnknownScaleError, scale_sentence, scales_of
from deep._util.scales import infer_scales as recognise_scales
from deep.datasets import FileRow
from deep.exceptions import InputError
from deep.integrations.foreign._tools import (
    LABEL_LIKE,
    PLAIN_TABLE,
    ForeignAnswer,
    ForeignItem,
    ForeignOptions,
    Tool,
    _spelled,
    answers_in,
    column_roles,
    first_of,
    flatten,
    is_empty,
    judge_columns,
    load,
    number_in,
    question_of,
    recognise,
    suggested_roles,
    text_of,
    tools,
)
from deep.integrations.inspect_files import judgment_of
from deep.prompt_pool import AnswerForm
from deep.records import ABSTAIN, Example, Judgment, Scale, VoteMatrix

# Words that an error or note lists as examples.
WORDS_SHOWN = 6


@dataclass(frozen=True)
class Foreign:
    """The contents of files of other tools, as deep has them.

    Parameters
    ----------
    titles : tuple of str
        The kind of each file.
    examples : tuple of Example
        The items; a text that the file lacks is empty.
    judgments : tuple of mapping of str to Judgment
        Of each item by judge; a number stands in `score`, beside the vote that it is.
    voters : tuple of str
        Their names, in the order of the columns.
    scales : mapping of str to Scale
        The scale of each voter that gave grades, which stand in the table as they are.
    soft : tuple of str
        The voters that gave verdicts and a number beside them.
    notes : tuple of str
        What a reader should know: what was left out, and what was assumed.
    """

    titles: tuple[str, ...]
    examples: tuple[Example, ...]
    judgments: tuple[Mapping[str, Judgment], ...]
    voters: tuple[str, ...]
    scales: Mapping[str, Scale]
    soft: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def votes(self) -> VoteMatrix:
        """Return the answers as a matrix."""
        none = math.nan if self.scales else ABSTAIN
        matrix = [[_answer(row.get(v), none, graded=v in self.scales) for v in self.voters] for row in self.judgments]
        labels = [ABSTAIN if one.label is None else one.label for one in self.examples]
        ids, names = [one.example_id for one in self.examples], [str(one.dataset) for one in self.examples]
        documents = [str(one.document_id) for one in self.examples]
        scales = [self.scales.get(v, BINARY) for v in self.voters] if self.scales else None
        return VoteMatrix(matrix, ids, self.voters, names, labels, documents, scales=scales)

    def write(self, out: Path) -> list[Path]:
        """Write the answers, with reasons and soft votes beside them, and the texts as ``NAME.examples.jsonl``.

        Parameters
        ----------
        out : Path
            The Parquet file of answers. Where there are none, the texts alone are written.

        Returns
        -------
        list of Path
            The files that people name in the next command: the answers first.
        """
        # What is refused leaves no file of texts.
        out = check_out(out, [".parquet"]) if self.voters else out
        scales = {name: {"scale": str(scale)} for name, scale in self.scales.items()}
        voters = {name: {"kind": "foreign", **scales.get(name, {})} for name in self.voters}
        paths, metadata = [], {"schema_version": 1, "voters": voters}
        if any(one.claim for one in self.examples):
            texts = out.with_suffix(".examples.jsonl")
            with atomic_file(check_out(texts, [".jsonl"])) as partial, partial.open("w", encoding="utf-8") as file:
                for one in self.examples:
                    row = {name: getattr(one, name) for name in Example.__slots__}
                    file.write(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n")
            metadata["examples"] = datasets.origin_record(datasets.read_examples(texts), out)
            paths.append(texts)
        if self.voters:
            rows = zip(self.examples, self.judgments, strict=True)
            asking.write_judgments(rows, self.voters, out, metadata, soft=self.soft, graders=self.scales)
            paths = [out, *([out.with_suffix(".soft.parquet")] if self.soft else []), *paths]
        return paths


def _answer(judgment: Judgment | None, none: float, *, graded: bool) -> float:
    """Return the grade of a grader, of others the vote; `none` where there is neither."""
    if judgment is None or judgment.vote == ABSTAIN:
        return none
    return judgment.score if graded and judgment.score is not None else judgment.vote


@dataclass
class _ForeignFile:
    """A file that was recognised.

    Parameters
    ----------
    path : Path
        Where it is.
    tool : Tool
        The kind of file that it is.
    records : list of mapping
        Its rows, or the objects of its list.
    head : mapping
        Beside them in a log of Inspect: its task, model and id, which tell logs apart.
    notes : list of str
        Lines for people on how it was read.
    """

    path: Path
    tool: Tool
    records: list[FileRow]
    head: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)


def read_foreign(paths: Sequence[str | Path], options: ForeignOptions | None = None) -> Foreign:
    """Read files of other tools.

    Parameters
    ----------
    paths : sequence of str or Path
        Files of one tool, or of several.
    options : ForeignOptions, optional
        What the files do not say of themselves, such as columns and words. Default: nothing.

    Raises
    ------
    InputError
        A file is none that is known, or something in it must be said first: which column, what a word means.
    """
    options = options or ForeignOptions()
    try:
        with table_defaults(None, options.scale):
            return _read(paths, options)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        # A part of the file is of another type than the tool writes.
        name, why = str(paths[0]), f"{type(error).__name__}: {error}"
        raise InputError(f"`files` must have the layout of their tool. Got another in {name!r}: {why}.") from None


def _read(paths: Sequence[str | Path], options: ForeignOptions) -> Foreign:
    """Return the contents of files of other tools; further people's files add to the items of the first."""
    files = [_open(Path(path)) for path in paths]
    names = _datasets(files, options)
    items = list[ForeignItem]()
    by_item = dict[tuple[str, str | None], ForeignItem]()  # to which one more person's file adds
    for file, name in zip(files, names, strict=True):
        for item in _items(file, name, options):
            same = by_item.setdefault((item.dataset, item.item), item) if file.tool.is_long else item
            if same is item:
                items.append(item)
            else:
                same.answers += item.answers
    if not any(item.answers or item.texts.get("claim") for item in items):
        raise _unknown(files[0].path, files[0].records)
    settled = _AnswerReader(items, files, options)
    examples = list(_examples(items, settled))
    titles = tuple(dict.fromkeys(file.tool.title for file in files))
    notes = [note for file in files for note in file.notes] + settled.notes
    rows = tuple(settled.rows)
    return Foreign(titles, tuple(examples), rows, settled.voters, settled.scales, settled.soft, tuple(notes))


def _open(path: Path) -> _ForeignFile:
    loaded = load(path)
    result = recognise(loaded)
    if result is None:
        raise _unknown(path, loaded if isinstance(loaded, Mapping) else [])
    head = loaded.get("eval", {}) if isinstance(loaded, Mapping) else {}
    return _ForeignFile(path, *result, head)


def _unknown(path: Path, loaded: Sequence[FileRow] | FileRow) -> InputError:
    titles = "; ".join(tool.title for tool in tools())
    if isinstance(loaded, Mapping):
        columns = list(loaded)
        remedy = "That is one object. Give a file with a record for each item (lm-eval: samples_*.jsonl)"
    else:
        columns = list(dict.fromkeys(key for record in loaded[:100] for key in record))
        guess = " ".join(f"--{role} {name!r}" for role, name in suggested_roles(loaded).items()) if loaded else ""
        remedy = f"Say which column is which, for instance: {guess or '--source COLUMN --claim COLUMN --judges COLUMN'}"
    return InputError(
        f"`files` must be one of: {titles}; or a table with a column of answers or of claims. Got {str(path)!r} with "
        f"{listed([repr(name) for name in columns], 12) or 'nothing in it'}. {remedy}."
    )


def _datasets(files: Sequence[_ForeignFile], options: ForeignOptions) -> list[str]:
    """Return the dataset of each file: its name, or of a log of Inspect its task; all different."""
    if options.dataset is not None:
        return [check_name(options.dataset, "dataset")] * len(files)
    stems = []
    for file in files:
        result = re.match(file.tool.file, file.path.name) if file.tool.file else None
        stem = file.path.name.lstrip(".").partition(".")[0] or "data"
        stems.append(result[1] if result else str(file.head.get("task") or stem))
    if all(file.tool.is_long for file in files):  # one more person, or one more model, on the same items
        return [stems[0]] * len(files)
    for key in ("model", "eval_id"):  # what tells apart the logs of one task
        if len(set(stems)) < len(stems) and all(file.head for file in files):
            stems = [f"{stem} {file.head.get(key)}" for stem, file in zip(stems, files, strict=True)]
    return [check_name(stem, "files") for stem in stems]


def _items(file: _ForeignFile, dataset: str, options: ForeignOptions) -> Iterator[ForeignItem]:
    """Yield the items of a file; where a record is one answer, an item has those of all of its records."""
    tool, long = file.tool, file.tool.is_long or "per" in file.tool.answers
    columns, rest = options.columns, list[str]()
    if tool is PLAIN_TABLE:
        columns, rest = _table_columns(file, options)
    elif "rest" in tool.answers:
        rest = judge_columns(file.records, tool.answers["known"], options.words(tool))
    paths = {role: tuple(_spelled(paths)) for role, paths in tool.paths.items()}
    for role, name in columns.items():
        if not any(name in flatten(record) for record in file.records):
            raise InputError(f"`{role}` must be a column or path in {str(file.path)!r}. Got {name!r}.")
        paths[role] = (name,)
    question = question_of(tool, file.records, options.answer)
    several = "epoch" in tool.needs and any(record.get("epoch") not in (1, None) for record in file.records)
    judges = {first_of(flatten(record), tool.answers.get("judge", ())) for record in file.records} - {None}
    person = str(judges.pop()) if len(judges) == 1 and tool.is_long else file.path.name.partition(".")[0]
    every = (answers_in(tool, flatten(record), question, person) for record in file.records)
    graders = _graders(chain.from_iterable(every)) if tool.name == "inspect" else set[str]()
    by_id: dict[str, ForeignItem] = {}
    for number, record in enumerate(file.records, start=1):
        fields = flatten(record)
        name = _id(first_of(fields, paths.get("item", ()))) or str(number)
        texts = {role: text_of(first_of(fields, paths.get(role, ()))) for role in ("source", "claim", "question")}
        document = _id(first_of(fields, paths.get("document", ())))
        item = f"{name}@epoch-{record['epoch']}" if several else name
        own = first_of(fields, paths.get("dataset", ()))
        label = first_of(fields, paths["label"]) if "label" in paths else _own_label(fields, options.label)
        one = ForeignItem(dataset if own is None else str(own), item, document, texts, label)
        one.answers = list(answers_in(tool, fields, question, person))
        part = first_of(fields, tool.answers.get("per", ()))
        beside = "" if part in (None, "none") else f", {part}"
        one.answers += [ForeignAnswer(f"{column}{beside}", record.get(column)) for column in rest]
        one.failed, one.people = first_of(fields, tool.broken) is not None, tool.people
        if tool.name == "lm-eval":
            texts["claim"] = _likeliest(record, fields) or texts["claim"]
        if tool.name == "inspect":
            one.answers = [_of_inspect(answer, record, graders, failed=one.failed) for answer in one.answers]
        if long and item in by_id:
            by_id[item].answers += one.answers
            continue
        by_id.setdefault(item, one)
        if not long:
            yield one
    yield from by_id.values() if long else ()


def _likeliest(record: FileRow, fields: Mapping[str, Any]) -> str:
    """Return the text of the likeliest choice of lm-eval, empty where the model was not asked for likelihoods.

    Such a response is a log-likelihood and whether greedy decoding gives that choice, as numbers or as their texts.
    """
    pairs = record.get("filtered_resps") or []
    if not all(isinstance(one, list) and len(one) == 2 and str(one[1]) in ("True", "False") for one in pairs):
        return ""
    likelihoods = [number for one in pairs if (number := number_in(one[0])) is not None]
    if not pairs or len(likelihoods) < len(pairs):
        return ""
    best = likelihoods.index(max(likelihoods))
    return text_of(first_of(fields, (f"arguments.gen_args_{best}.arg_1", f"arguments.{best}.1"))).strip()


def _graders(answers: Iterable[ForeignAnswer]) -> set[str]:
    """Return the scorers of Inspect that give grades: numbers alone, at least three and a tenth of them no 0 or 1.

    Of the others a number between 0 and 1 is partial credit, which is no vote.
    """
    values = defaultdict[str, list[object]](list)
    for answer in answers:
        values[answer.judge] += [] if is_empty(answer.value) else [answer.value]
    numbers = {name: own for name, own in values.items() if all(isinstance(one, int | float) for one in own)}
    between = {name: sum(one not in (0, 1) for one in own) for name, own in numbers.items()}
    return {name for name, own in numbers.items() if between[name] >= max(3, len(own) / 10)}


def _of_inspect(answer: ForeignAnswer, record: FileRow, graders: set[str], *, failed: bool) -> ForeignAnswer:
    """Return an answer of Inspect; but for a grade with the judgment that it is, by Inspect's own reasons."""
    name = answer.judge.partition(".")[0]
    score = (record.get("scores") or {}).get(answer.judge) or (record.get("scores") or {}).get(name) or {}
    reason = score.get("reason") if isinstance(score, Mapping) else None
    if answer.judge in graders and reason is None and not is_empty(answer.value):
        return answer  # its scale tells
    result = SimpleNamespace(value=answer.value, reason=reason, explanation=answer.why)
    return answer._replace(judgment=judgment_of(result if score else None, failed=failed))


def _id(value: object) -> str:
    """Return an id as text; a whole number that is a float, as data frames make it, as a whole number."""
    if is_empty(value):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _own_label(fields: Mapping[str, Any], name: str | None) -> object:
    """Return the value under the name of the label, wherever in a record."""
    if name is None:
        return None
    return fields.get(name, next((value for key, value in fields.items() if key.endswith(f".{name}")), None))


def _table_columns(file: _ForeignFile, options: ForeignOptions) -> tuple[dict[str, str], list[str]]:
    """Return the column of each role in a table without a tool's marks, found by its name or given; and the judges."""
    columns = {key for record in file.records for key in record}
    choices = options.columns | ({"label": options.label} if options.label in columns else {})
    roles = column_roles(file.records, choices)
    if options.label is None and roles.get("label") in options.judges:
        del roles["label"]
    left_out = {*roles.values(), *options.ignore}
    missing = next((name for name in options.judges if name not in columns), None)
    if missing is not None:
        raise InputError(f"`judges` must be columns: {listed(sorted(columns), 12)}. Got {missing!r}.")
    judges = list(options.judges) or judge_columns(file.records, left_out, options.words(PLAIN_TABLE))
    rest = sorted(columns - {*judges, *left_out})
    judges += [name for name in rest if any(fnmatchcase(name, pattern) for pattern in SCALES.get())]
    if "label" not in roles and len(judges) == 1 and not options.judges and LABEL_LIKE.search(judges[0]):
        roles["label"], judges = judges[0], []
    guesses = [f"{role} is {name!r}" for role, name in roles.items() if role != name and role not in choices]
    unused = [repr(name) for name in columns - {*roles.values(), *judges}]
    if guesses:
        file.notes.append(f"By its name, {listed(guesses, 12)}. For others: --source, --claim, --label, --item.")
    if judges:
        file.notes.append(f"Judges: {listed([repr(name) for name in judges], 12)}.")
    if unused:
        file.notes.append(f"Not used: {listed(sorted(unused), 12)}.")
    return roles, judges


# How replies are read that no prompt of deep asked for: a word of a verdict in text, with no scale and no threshold.
REPLIES = AnswerForm(
    "verdict", "text", {word: vote for word, vote in VOTE_OF_TEXT.items() if word.isalpha() and word.islower()}, None, 0
)


class _AnswerReader:
    """The judgments that answers are, once it is known on which scale each judge answers.

    Parameters
    ----------
    items : sequence of ForeignItem
        All items of the files, with their answers.
    files : sequence of _ForeignFile
        Their tools say which words are answers, and of which judges a lower number is better.
    options : ForeignOptions
        What the user says of words, judges and labels, which goes before.
    """

    def __init__(self, items: Sequence[ForeignItem], files: Sequence[_ForeignFile], options: ForeignOptions) -> None:
        self._options, self.notes = options, list[str]()
        self._words = {word: vote for file in files for word, vote in options.words(file.tool).items()}
        self._lower = tuple(name for file in files for name in file.tool.lower)
        self._replies = any(file.tool.answers.get("replies") for file in files)
        every = any(not file.tool.is_long for file in files)  # a person may leave items out, a metric does not
        self._numbers: dict[str, list[float]] = defaultdict(list)
        self._unread: dict[str, Counter[str]] = defaultdict(Counter)
        self._usable: Counter[str] = Counter()
        answers = [self._once(item) for item in items]
        for answer in (answer for row in answers for answer in row):
            self._note_answer(answer)
        own: dict[str, dict[str, None]] = defaultdict(dict)
        for item, row in zip(items, answers, strict=True):
            own[item.dataset].update(dict.fromkeys(answer.judge for answer in row))
        self._check(label_only=options.label is not None and options.label in {n for d in own.values() for n in d})
        are_votes = {number_in(one.label) for one in items} <= {0, 1, None}
        self._label_cut = 1 if are_votes else options.from_grade
        self.rows: list[dict[str, Judgment]] = []
        self.labels: list[int | None] = []
        for item, row in zip(items, answers, strict=True):
            result = {answer.judge: self._judgment(answer) for answer in row if answer.judge not in self._left_out}
            absent = Judgment(ABSTAIN, "failed" if item.failed else "abstained")
            if every:
                result |= {name: absent for name in own[item.dataset] if name not in {*result, *self._left_out}}
            right = result.pop(options.label, None) if options.label is not None else None
            label = self._label(item.label) if right is None else right.vote
            self.labels.append(None if label == ABSTAIN else label)
            self.rows.append(result)
        names = dict.fromkeys(name for names in own.values() for name in names)
        self.voters = tuple(sorted(name for name in names if name not in {*self._left_out, options.label}))
        graders = self._graders if options.from_grade is None else ()
        self.scales = {name: self._scales[name] for name in self.voters if name in graders}
        numbered = {n for row in self.rows for n, one in row.items() if one.score not in (None, 0.0, 1.0)}
        self.soft = tuple(name for name in self.voters if name in numbered and name not in self.scales)
        self._tell(names)

    def _once(self, item: ForeignItem) -> list[ForeignAnswer]:
        """Return the answers of an item, one a judge: several of a metric are a judge each, and a person has one."""
        by_judge: dict[str, list[ForeignAnswer]] = defaultdict(list)
        for answer in map(self._named, item.answers):
            by_judge[answer.judge].append(answer)
        for name, same in by_judge.items():
            values = list(dict.fromkeys(str(self._plain(answer)) for answer in same))
            if item.people and len(values) > 1:
                raise InputError(
                    f"`files` must have one answer per person and item. Got {values[0]!r} and {values[1]!r} of "
                    f"{name!r} on item {item.item!r}. Choose the question with --answer, or delete one."
                )
        return [
            answer._replace(judge=name if n == 1 else f"{name} {n}")
            for name, same in by_judge.items()
            for n, answer in enumerate(same[:1] if item.people else same, start=1)
        ]

    def _named(self, answer: ForeignAnswer) -> ForeignAnswer:
        """Return an answer under a name that a column of judges may have."""
        name = " ".join(answer.judge.split())
        reserved = intended_column(name, datasets.VOTE_COLUMNS) or name in datasets.VOTE_COLUMNS
        return answer._replace(judge=f"judge {name}" if reserved and name != self._options.label else name)

    def _plain(self, answer: ForeignAnswer) -> object:
        """Return the value of an answer: of several the last; where there is none, the grade."""
        value = answer.value
        while isinstance(value, list | tuple) and value:
            value = value[-1]
        return answer.grade if is_empty(value) else value

    def _note_answer(self, answer: ForeignAnswer) -> None:
        value = self._plain(answer)
        if answer.judgment is not None or not is_empty(answer.failed):
            # No answer says nothing of how its judge answers.
            if answer.judgment is not None and answer.judgment.vote != ABSTAIN:
                self._usable[answer.judge] += 1
        elif not isinstance(value, bool) and (number := number_in(value)) is not None and not math.isnan(number):
            self._numbers[answer.judge].append(number)
        elif isinstance(value, bool) or (
            isinstance(value, str) and (self._replies or value.strip().lower() in self._words)
        ):
            self._usable[answer.judge] += 1
        elif not is_empty(value):
            self._unread[answer.judge][str(value)] += 1

    def _recognised_scales(self) -> dict[str, Scale]:
        """Return the scale of each judge that gives numbers; none of those on no usual scale."""
        declared = scales_of(SCALES.get(), [*self._numbers])
        numbers = {name: np.array(own) for name, own in self._numbers.items() if name not in self._options.ignore}
        while True:
            unknown = {name: own for name, own in numbers.items() if name not in declared}
            try:
                scales = recognise_scales(unknown) | declared  # together, as whoever reads the table will see them
                break
            except UnknownScaleError as error:
                del numbers[error.column]
        self._graders = {name for name, one in scales.items() if not one.binary} - {*self._usable}
        # A few shares among votes would be read as mistakes, so they are cut; other numbers have no scale.
        scales |= {name: Scale(0, 1) for name, own in numbers.items() if scales[name].binary and {*own} - {0, 1}}
        return {n: one for n, one in scales.items() if n in declared or not np.isnan(one.places(numbers[n])).any()}

    def _is_high(self, judge: str, number: float) -> bool:
        """Return whether a number counts as consistent: from the grade that was given on, else from the middle on."""
        scale, grade = self._scales.get(judge), self._options.from_grade
        if scale is not None and (grade is None or not scale.low <= grade <= scale.high):
            return bool(scale.places(np.array(number)) >= VOTE_THRESHOLD)
        return number >= (grade or 0)

    def _check(self, *, label_only: bool) -> None:
        """Leave out judges whose answers cannot be read; raise where none is left."""
        options = self._options
        self._left_out = {*options.ignore}
        words = {name: n for name, n in self._unread.items() if name not in self._left_out}
        self._scales = self._recognised_scales()
        # Labels are no grades, so those need a cut that is no guess.
        scale_names = {name for name, one in self._scales.items() if name != options.label or one.high <= 1}
        grades = {*self._numbers} - scale_names - self._left_out if options.from_grade is None else set[str]()
        mixed = next((name for name in words if self._usable[name] or name in self._numbers), None)
        usable = {*self._usable, *self._numbers} - {*words, *grades, *options.ignore}
        if words and (mixed or not usable - ({options.label} if label_only else set())):
            counts = sum((words[name] for name in ([mixed] if mixed else words)), Counter[str]())
            sample = ", ".join(f"{word!r:.40} ({n:,})" for word, n in counts.most_common(WORDS_SHOWN))
            raise InputError(
                f"`yes` and `no` must say what the answers mean. Got {sample}{f' of {mixed!r}' if mixed else ''}. Name "
                "words that mean consistent with --yes, and the others with --no; leave a judge out with --ignore."
            )
        for name in words:
            seen_words = ", ".join(map(repr, list(words[name])[:WORDS_SHOWN]))
            self.notes.append(f"Left out: {name} ({seen_words}); set the meaning of words with --yes and --no.")
        for name in sorted(grades):
            ends = f"{min(self._numbers[name]):g} to {max(self._numbers[name]):g}"
            self.notes.append(f"Left out: {name} (grades from {ends}); declare its --scale, or set --from-grade.")
        if grades and not usable:
            raise InputError(
                f"`from_grade` must be the lowest grade that counts as consistent. Got none. {' '.join(self.notes)}"
            )
        self._left_out |= {*words, *grades}

    def _judgment(self, answer: ForeignAnswer) -> Judgment:
        value, why = self._plain(answer), text_of(answer.why) or None
        grade = number_in(answer.grade)
        if answer.judgment is not None:
            return answer.judgment
        if not is_empty(answer.failed):
            return Judgment(ABSTAIN, "failed", rationale=why or text_of(answer.failed))
        if isinstance(value, str) and number_in(value) is None and value.strip().lower() in self._words:
            vote = self._words[value.strip().lower()]
            value = None if vote == ABSTAIN else bool(vote)
        if is_empty(value):
            return Judgment(ABSTAIN, "abstained", rationale=why)
        if isinstance(value, bool):
            return Judgment(int(value), score=grade, rationale=why)
        number = number_in(value)
        if number is None:
            details = {"finish_reason": None, "refusal": None, "material": None, "logprobs": None}
            return replace(REPLIES.judge(str(value), **details), rationale=str(value))
        scale, is_lower = self._scales.get(answer.judge), answer.judge.startswith(self._lower)
        if scale is not None and scale.declared and np.isnan(scale.places(np.array(number))):
            return Judgment(ABSTAIN, "unparsable", rationale=why)  # it lies outside of what its judge may answer
        vote = int(self._is_high(answer.judge, number) is not is_lower)
        if scale is not None and scale.binary:
            return Judgment(vote, score=grade, rationale=why)
        number = scale.low + scale.high - number if scale is not None and is_lower else number
        return Judgment(vote, score=number, rationale=why)

    def _label(self, value: object) -> int | None:
        """Return the label that a cell is; None where it is empty or is no answer."""
        number = number_in(value)
        if number is None:
            return self._words.get(value.strip().lower()) if isinstance(value, str) else None
        if self._label_cut is None:
            return int(number) if number in (0, 1) else None
        return int(number >= self._label_cut)

    def _tell(self, names: Iterable[str]) -> None:
        """Note which numbers are grades; refuse a label that nothing has."""
        if self.scales:
            self.notes.append(scale_sentence(self.scales, [*self.scales.values()]))
        if self.soft:
            self.notes.append(f"Numbers of {listed(self.soft)} stand beside the votes, for `deep fit --scores`.")
        label = self._options.label
        if label is not None and all(one is None for one in self.labels):
            judges = listed(sorted(names), 12) or "none"
            raise InputError(
                f"`label` must be a judge ({judges}) or a column of 0 and 1. Got {label!r}: no label. "
                "Of grades, say the lowest that counts as consistent (--from-grade)."
            )


def _examples(items: Sequence[ForeignItem], settled: _AnswerReader) -> Iterator[Example]:
    """Yield the items as examples: ids are unique, and items of one source are of one document."""
    counts: Counter[tuple[str, str]] = Counter()
    documents: dict[tuple[str, str], str] = {}
    for item, label in zip(items, settled.labels, strict=True):
        name = str(item.item)
        if not is_storable(name):
            raise InputError(f"`files` must name items in plain text, without NUL. Got {name!a}. Export them again.")
        counts[item.dataset, name] += 1
        n = counts[item.dataset, name]
        source = item.texts.get("source", "")
        document = item.document or (documents.setdefault((item.dataset, source), name) if source else name)
        claim, question = item.texts.get("claim", ""), item.texts.get("question") or None
        yield Example(source, claim, name if n == 1 else f"{name}#{n}", label, item.dataset, document, question)

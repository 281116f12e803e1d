"""Prompts as TOML files, one a prompt and its document-first variant; the pools of them; and how both are shown."""

import gzip
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from deep._util.files import parse_toml, read_asset, read_bytes
from deep._util.names import format_table
from deep.exceptions import InputError
from deep.prompt_pool._prompt import Prompt, find_problems

# The ending of the id of a document-first variant.
DOCUMENT_FIRST = "-doc-first"

# The word behind ``ID@`` that names the version whose answers carry a code of their question.
CODED_VERSION = "coded"

# Digits of a hash that name a version, as columns of votes show them.
SHORTEST_HASH = 8

_MATERIAL = "{{source}}\n\n{{claim}}\n\n"
_MATERIAL_FIRST_SENTENCE = " The material comes first, the task after it."


def document_first(prompt: Prompt) -> Prompt:
    r"""Return the variant of a prompt whose user message begins with the source and the claim.

    The task closes up where they stood, and the first line of the system message tells the order.

    Parameters
    ----------
    prompt : Prompt
        With the source and the claim as paragraphs of their own, one right after the other, before the last one.

    Raises
    ------
    InputError
        The prompt puts the document first already, or its source and claim are no such paragraphs.

    Examples
    --------
    >>> from deep.prompt_pool import document_first, load_prompt
    >>> variant = document_first(load_prompt("yes-no"))
    >>> variant.id, variant.user[:23]
    ('yes-no-doc-first', '{{source}}\n\n{{claim}}\n\n')
    >>> variant == load_prompt("yes-no-doc-first")
    True
    """
    if prompt.document_first or _MATERIAL not in prompt.user:
        raise InputError(
            "`prompt` must hold {{source}} and {{claim}} as two paragraphs in a row, its task before them. "
            f"Got another order (prompt {prompt.id!r})."
        )
    first_line, line_end, rest = prompt.system.partition("\n")
    return replace(
        prompt,
        id=prompt.id + DOCUMENT_FIRST,
        document_first=True,
        system=f"{first_line}{_MATERIAL_FIRST_SENTENCE}{line_end}{rest}" if first_line else prompt.system,
        user=_MATERIAL + prompt.user.replace(_MATERIAL, ""),
    )


FOLDER = Path(__file__).parent / "prompts"

_ENDINGS = ("", DOCUMENT_FIRST)

POOLS: Mapping[str, tuple[str, ...]] = {
    pool + ending: tuple(name + ending for name in names)
    for ending in _ENDINGS
    for pool, names in read_asset(__package__, "pools.toml").items()
}
"""The ids of the prompts of each pool, by name."""


def list_prompts() -> tuple[str, ...]:
    """Return the ids of all prompts that come with deep, sorted."""
    return tuple(sorted(name + ending for name in _written_ids() for ending in _ENDINGS))


def _written_ids() -> list[str]:
    """Return the ids of the prompts that have a file of their own; the variants of the others come from theirs."""
    return [path.stem for path in FOLDER.glob("*.toml")]


def load_prompt(id_or_path: str | Path) -> Prompt:
    """Return a prompt by its id, or from a TOML file by its path.

    ``ID@coded`` is the version whose answers carry a code, and ``ID@HASH`` the one of this hash, of which the first
    eight digits do: so a column of old votes is asked for again, whichever version the id alone stands for.

    Raises
    ------
    InputError
        There is no such prompt, or its file breaks a rule.

    Examples
    --------
    >>> from deep.prompt_pool import load_prompt
    >>> load_prompt("deep-numbers").labels["NOT SUPPORTED"]
    0
    >>> load_prompt("deep-numbers@coded").hash == load_prompt("deep-numbers").hash
    False
    """
    if str(id_or_path).endswith(".toml"):
        return _load(Path(id_or_path))
    full, at, version = str(id_or_path).partition("@")
    if full not in list_prompts():
        allowed = ", ".join(sorted(_written_ids()))
        raise InputError(
            f"`id` must be one of {allowed}, each also with {DOCUMENT_FIRST} behind it, or a path to a .toml file. "
            f"Got {str(id_or_path)!r}."
        )
    name = full.removesuffix(DOCUMENT_FIRST)
    prompt = _load(FOLDER / f"{name}.toml")
    prompt = prompt if name == full else document_first(prompt)
    if not at:
        return prompt
    versions = [prompt, replace(prompt, coded=True)]
    for one in versions:
        if (version == CODED_VERSION and one.coded) or (len(version) >= SHORTEST_HASH and one.hash.startswith(version)):
            return one
    hashes = " or ".join(one.hash[:SHORTEST_HASH] for one in versions)
    raise InputError(f"`id` must have {CODED_VERSION} or its own hash after the @, {hashes}. Got {str(id_or_path)!r}.")


def load_pool(name_or_folder: str | Path) -> tuple[Prompt, ...]:
    """Return the prompts of a pool, or of every TOML file in a folder, sorted by name; ``POOL@coded`` with codes.

    Raises
    ------
    InputError
        There is neither a pool nor a folder of that name, the folder holds no prompt, or a file breaks a rule.

    Examples
    --------
    >>> from deep.prompt_pool import load_pool
    >>> len(load_pool("deep-9"))
    9
    """
    pool, at, version = str(name_or_folder).partition("@")
    if pool in POOLS:
        return tuple(load_prompt(f"{name}{at}{version}") for name in POOLS[pool])
    if not Path(name_or_folder).is_dir():
        raise InputError(
            f"`name_or_folder` must be one of {', '.join(sorted(POOLS))}, or a folder of .toml prompts. "
            f"Got {str(name_or_folder)!r}."
        )
    return tuple(_load(path) for path in _files(Path(name_or_folder)))


def check_folder(path: str | Path) -> list[str]:
    """Return the problems of a folder's prompts, one line each; empty where all can be used.

    Raises
    ------
    InputError
        There is no such folder, or it holds no TOML file.
    """
    if not Path(path).is_dir():
        raise InputError(f"`path` must be a folder. Got {str(path)!r}.")
    problems: list[str] = []
    alike: dict[tuple[str, ...], str] = {}
    for file in _files(Path(path)):
        result = _problems(file)
        problems += [f"{file.name}: {problem}" for problem in result]
        if not result:
            prompt = _load(file)
            # Two files of one text would be two judges that answer alike, and seem to agree.
            first = alike.setdefault((prompt.system, prompt.user), file.name)
            if first != file.name:
                problems.append(f"{file.name}: `user` must differ from prompt to prompt. Got the text of {first}.")
    return problems


def _files(folder: Path) -> list[Path]:
    runs = {"run.toml", *(file.name for file in folder.glob("*.run.toml"))}  # what commands wrote of themselves
    files = sorted((file for file in folder.glob("*.toml") if file.name not in runs), key=lambda file: file.stem)
    if not files:
        raise InputError(f"`path` must hold at least one .toml prompt. Got none in {str(folder)!r}.")
    return files


def _read(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_bytes(path, "path"))
    except OSError as error:
        raise InputError(f"`path` must be a readable file. Got {str(path)!r}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"`path` must hold UTF-8 text. Got byte {error.start} of {str(path)!r}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"`path` must hold TOML. Got {str(path)!r}: {error}.") from None


def _problems(path: Path) -> list[str]:
    try:
        values = _read(path)
    except InputError as error:
        return [str(error)]
    problems = find_problems(values)
    if values.get("id") != path.stem:
        problems.append(f"`id` must be the name of its file, {path.stem!r}. Got {values.get('id')!r}.")
    return problems


def _load(path: Path) -> Prompt:
    problems = _problems(path)
    if problems:
        raise InputError(f"{problems[0]} ({path})" if str(path) not in problems[0] else problems[0])
    return Prompt(**_read(path))


_TEXTS = ("system", "user")

# The header and the title of the table of prompts that are to err in their own way.
_AIM_HEADER = ("ID", "STRICTNESS", "TPR", "TNR", "ERROR THAT IT IS NOT TO SHARE")
_AIMS_TITLE = "\ndesigned for different errors; rates beside deep-strict-steps"


def describe_prompt(prompt: Prompt) -> dict[str, object]:
    """Return the fields of a prompt and its hash.

    Examples
    --------
    >>> from deep.prompt_pool import describe_prompt, load_prompt
    >>> list(describe_prompt(load_prompt("yes-no")))[:3]
    ['id', 'hash', 'version']
    """
    return {"id": prompt.id, "hash": prompt.hash, **asdict(prompt)}


def prompt_lines(prompt: Prompt) -> Iterator[str]:
    """Yield the fields of a prompt as a table, and its messages."""
    fields = describe_prompt(prompt)
    header = {name: value for name, value in fields.items() if name not in _TEXTS and value not in (None, {}, "")}
    yield format_table([(name, _in_words(value)) for name, value in header.items()])
    yield from (f"\n[{name}]\n{str(fields[name]).strip()}" for name in _TEXTS if fields[name])


def prompt_table(prompts: Iterable[Prompt]) -> str:
    """Return a table of prompts, a line each, and one of the aims of those that are to err in their own way."""
    entries = list(prompts)
    rows = format_table([("ID", "HASH", "ANSWER", "REASONS", "FOLLOWS"), *map(_row, entries)])
    aims = [
        (prompt.id, prompt.strictness, prompt.expected_tpr, prompt.expected_tnr, prompt.unshared_error)
        for prompt in entries
        if prompt.unshared_error
    ]
    return "\n".join([rows, _AIMS_TITLE, format_table([_AIM_HEADER, *aims])]) if aims else rows


def _row(prompt: Prompt) -> tuple[str, ...]:
    first = "first" if prompt.reasons_first else "none"
    return prompt.id, prompt.hash[:8], f"{prompt.kind}, {prompt.output}", first, prompt.follows


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_in_words(entry)}" for key, entry in value.items())
    return value if isinstance(value, str) else json.dumps(value)


# The endings of replies that are shown of each kind.
N_ENDINGS = 3

# The most characters of an ending that are shown.
LONGEST_ENDING = 120


@dataclass
class ReplyCheck:
    """The replies of a file by the reading of a prompt.

    Parameters
    ----------
    by_kind : dict of str to list of str
        The replies by what is read: ``1``, ``0``, ``abstained``, a score, or the reason why there is none;
        ``contradictory`` for those that are unparsable and hold both verdicts.
    """

    by_kind: dict[str, list[str]] = field(default_factory=dict)

    @property
    def n_replies(self) -> int:
        """The number of replies."""
        return sum(map(len, self.by_kind.values()))

    @property
    def n_lost(self) -> int:
        """The number of replies from which neither a vote nor an abstention is read."""
        return sum(len(self.by_kind.get(kind, ())) for kind in ("contradictory", "refused", "truncated", "unparsable"))

    def results(self) -> Mapping[str, object]:
        """Return the counts and the samples as values of JSON."""
        samples = {kind: list(map(reply_ending, replies[:N_ENDINGS])) for kind, replies in self.by_kind.items()}
        counts = {kind: len(replies) for kind, replies in self.by_kind.items()}
        return {"replies": self.n_replies, "lost": self.n_lost, "counts": counts, "endings": samples}

    def lines(self) -> Iterator[str]:
        """Yield a table of what is read, with some endings of each kind."""
        rows = sorted(self.by_kind.items(), key=lambda item: (-len(item[1]), item[0]))
        shares = [(kind, len(texts), f"{100 * len(texts) / max(self.n_replies, 1):.1f} %") for kind, texts in rows]
        yield format_table([("READ AS", "REPLIES", "SHARE"), *((kind, f"{n:,}", share) for kind, n, share in shares)])
        yield f"\n{self.n_lost:,} of {self.n_replies:,} replies are lost"
        for kind, texts in rows:
            yield f"\n{kind}"
            yield from (f"  {reply_ending(reply)}" for reply in texts[:N_ENDINGS])


def reply_ending(reply: str) -> str:
    r"""Return the end of a reply in one line.

    Examples
    --------
    >>> from deep.prompt_pool._pool import reply_ending
    >>> reply_ending("It rained.\nVERDICT: NO")
    'It rained. VERDICT: NO'
    """
    line = " ".join(reply.split())
    return line if len(line) <= LONGEST_ENDING else f"... {line[-LONGEST_ENDING:]}"


def check_replies(prompt: Prompt, path: str | Path) -> ReplyCheck:
    """Read a file of replies by a prompt.

    Parameters
    ----------
    prompt : Prompt
        The prompt that was asked; it says how a reply is read.
    path : str or Path
        JSON lines, compressed or not: each a text, or an object with `reply` and, if known, `finish_reason`,
        `source`, `claim` and `question`.

    Raises
    ------
    InputError
        The file cannot be read, or a line is neither.
    """
    check = ReplyCheck()
    for record in _replies(Path(path)):
        finish, *texts = (record.get(name) for name in ("finish_reason", "source", "claim", "question"))
        source, claim, question = texts
        judgment = prompt.parse(record["reply"], finish_reason=finish, source=source, claim=claim, question=question)
        kind = str(judgment.reason or (judgment.vote if judgment.score is None else f"score, vote {judgment.vote}"))
        if kind == "unparsable" and len(prompt.verdicts_in(record["reply"])) > 1:
            kind = "contradictory"
        check.by_kind.setdefault(kind, []).append(record["reply"])
    return check


def _replies(path: Path) -> Iterator[dict[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _reply(line, f"line {number} of {str(path)!r}")
    except OSError as error:
        raise InputError(f"`replies` must be a readable file. Got {str(path)!r}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"`replies` must hold UTF-8 text. Got other bytes in {str(path)!r}.") from None


def _reply(line: str, where: str) -> dict[str, str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"`replies` must hold JSON lines. Got none at {where}.") from None
    record = {"reply": record} if isinstance(record, str) else record
    texts: Sequence[object] = list(record.values()) if isinstance(record, dict) else []
    if not isinstance(record, dict) or not isinstance(record.get("reply") or "", str) or not texts:
        raise InputError(f"`replies` must hold texts, or objects with `reply`. Got {line.strip()[:60]!r} at {where}.")
    fields = {name: value for name, value in record.items() if isinstance(value, str)}
    return {**fields, "reply": fields.get("reply", "")}

"""A prompt as people read it."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from deep._util.names import table
from deep.exceptions import InputError
from deep.prompt_pool._prompt import Prompt

_TEXTS = ("system", "user")
_AIM = ("ID", "STRICTNESS", "TPR", "TNR", "ERROR THAT IT IS NOT TO SHARE")
_AIMS = "\nmeant to err in their own way; rates next to those of deep-strict-steps"


def describe_prompt(prompt: Prompt) -> dict[str, object]:
    """Return the fields of a prompt and its hash.

    Examples
    --------
    >>> from deep.prompt_pool import describe_prompt, load_prompt
    >>> list(describe_prompt(load_prompt("yes-no")))[:3]
    ['id', 'hash', 'version']
    """
    return {"id": prompt.id, "hash": prompt.hash, **{k: v for k, v in asdict(prompt).items() if k != "id"}}


def prompt_lines(prompt: Prompt) -> Iterator[str]:
    """Yield the fields of a prompt as a table, and its messages."""
    fields = describe_prompt(prompt)
    shown = {name: value for name, value in fields.items() if name not in _TEXTS and value not in (None, {}, "")}
    yield table([(name, _in_words(value)) for name, value in shown.items()])
    yield from (f"\n[{name}]\n{str(fields[name]).strip()}" for name in _TEXTS if fields[name])


def prompt_table(prompts: Iterable[Prompt]) -> str:
    """Return a table of prompts, a line each, and one of what those are for that are to err in their own way."""
    listed = list(prompts)
    rows = table([("ID", "HASH", "ANSWER", "REASONS", "FOLLOWS"), *map(_row, listed)])
    aims = [_aim(prompt) for prompt in listed if prompt.unshared_error]
    return "\n".join([rows, _AIMS, table([_AIM, *aims])]) if aims else rows


def _row(prompt: Prompt) -> tuple[str, ...]:
    first = "first" if prompt.reasons_first else "none"
    return prompt.id, prompt.hash[:8], f"{prompt.kind}, {prompt.output}", first, prompt.follows


def _aim(prompt: Prompt) -> tuple[str, ...]:
    return prompt.id, prompt.strictness, prompt.expected_tpr, prompt.expected_tnr, prompt.unshared_error


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_in_words(entry)}" for key, entry in value.items())
    return value if isinstance(value, str) else json.dumps(value)


SHOWN = 3
"""Endings that are shown of each kind."""

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
        samples = {kind: list(map(ending, replies[:SHOWN])) for kind, replies in self.by_kind.items()}
        counts = {kind: len(replies) for kind, replies in self.by_kind.items()}
        return {"replies": self.n_replies, "lost": self.n_lost, "counts": counts, "endings": samples}

    def lines(self) -> Iterator[str]:
        """Yield a table of what is read, with some endings of each kind."""
        rows = sorted(self.by_kind.items(), key=lambda item: (-len(item[1]), item[0]))
        shares = [(kind, len(said), f"{len(said) / max(self.n_replies, 1):.1%}") for kind, said in rows]
        yield table([("READ AS", "REPLIES", "SHARE"), *((kind, f"{n:,}", share) for kind, n, share in shares)])
        yield f"\n{self.n_lost:,} of {self.n_replies:,} replies are lost"
        for kind, said in rows:
            yield f"\n{kind}"
            yield from (f"  {ending(reply)}" for reply in said[:SHOWN])


def ending(reply: str) -> str:
    r"""Return the end of a reply in one line.

    Examples
    --------
    >>> from deep.prompt_pool._describe import ending
    >>> ending("It rained.\nVERDICT: NO")
    'It rained. VERDICT: NO'
    """
    said = " ".join(reply.split())
    return said if len(said) <= LONGEST_ENDING else f"... {said[-LONGEST_ENDING:]}"


def check_replies(prompt: Prompt, path: str | Path) -> ReplyCheck:
    """Read a file of replies by a prompt.

    Parameters
    ----------
    prompt : Prompt
    path : str or Path
        JSON lines, compressed or not: each a text, or an object with `reply` and, if known, `finish_reason`,
        `source`, `claim` and `question`.

    Raises
    ------
    InputError
        The file cannot be read, or a line is neither.
    """
    check = ReplyCheck()
    for said in _replies(Path(path)):
        finish, *texts = (said.get(name) for name in ("finish_reason", "source", "claim", "question"))
        source, claim, question = texts
        judgment = prompt.parse(said["reply"], finish_reason=finish, source=source, claim=claim, question=question)
        kind = str(judgment.reason or (judgment.vote if judgment.score is None else f"score, vote {judgment.vote}"))
        if kind == "unparsable" and len(prompt.verdicts_in(said["reply"])) > 1:
            kind = "contradictory"
        check.by_kind.setdefault(kind, []).append(said["reply"])
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
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"`replies` must hold JSON lines. Got none at {where}.") from None
    said = {"reply": said} if isinstance(said, str) else said
    texts: Sequence[object] = list(said.values()) if isinstance(said, dict) else []
    if not isinstance(said, dict) or not isinstance(said.get("reply") or "", str) or not texts:
        raise InputError(f"`replies` must hold texts, or objects with `reply`. Got {line.strip()[:60]!r} at {where}.")
    kept = {name: value for name, value in said.items() if isinstance(value, str)}
    return {**kept, "reply": kept.get("reply", "")}

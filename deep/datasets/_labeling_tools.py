"""Answers of people in Argilla and in Label Studio as votes: a voter a person."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deep._cells import shown
from deep._files import read_bytes
from deep._text import is_storable
from deep.exceptions import InputError
from deep.records import ABSTAIN, VoteMatrix

VoteOfAnswer = Mapping[str, int | None]
Record = Mapping[str, Any]
Given = Iterator[tuple[str, object]]
"""The people who answered a question of one record, each with the answer."""


def read_argilla(path: str | Path, question: str, answers: VoteOfAnswer, *, dataset: str) -> VoteMatrix:
    """Read the responses to one question from the records of an Argilla dataset.

    Parameters
    ----------
    path : path
        The JSON of ``dataset.records.to_list(flatten=True)``, or what ``to_json`` writes, of Argilla 2. Only the former
        says which responses are drafts or discarded, and these are then no votes; in the latter every response counts.
    question : str
        The name of the question.
    answers : mapping of str to {1, 0, None}
        The vote that each answer is; None for one that is no vote. An answer that is not named is an error.
    dataset : str
        The name of the items' dataset.

    Returns
    -------
    VoteMatrix
        A row a record, by its id, and a voter a user, by the user's id. Suggestions are no votes.

    Raises
    ------
    InputError
        The file is no such export, nobody answered the question, or an answer is not among `answers`.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import read_argilla
    >>> said = [{"value": "supported", "user_id": "u1"}, {"value": "unsure", "user_id": "u2"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "records.json")
    ...     _ = path.write_text(json.dumps([{"id": "a", "fields": {}, "responses": {"verdict": said}}]))
    ...     votes = read_argilla(path, "verdict", {"supported": 1, "not": 0, "unsure": None}, dataset="news")
    >>> votes.voter_names, votes.votes.tolist()
    (('u1', 'u2'), [[1, -1]])
    """
    return _read(path, "Argilla's records", _argilla_answers, question, answers, dataset)


def read_label_studio(path: str | Path, question: str, answers: VoteOfAnswer, *, dataset: str) -> VoteMatrix:
    """Read the choices of annotators from the tasks of a Label Studio project.

    Parameters
    ----------
    path : path
        An export as ``JSON``, not as ``JSON-MIN``.
    question : str
        The name of the ``Choices`` tag, ``from_name`` in the export.
    answers : mapping of str to {1, 0, None}
        As in `read_argilla`.
    dataset : str

    Returns
    -------
    VoteMatrix
        A row a task, by its id, and a voter an annotator, by e-mail address where the export has it, else by id.
        Skipped annotations, drafts and predictions are no votes.

    Raises
    ------
    InputError
        As in `read_argilla`.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import read_label_studio
    >>> result = [{"from_name": "verdict", "to_name": "text", "type": "choices", "value": {"choices": ["yes"]}}]
    >>> task = {"id": 7, "data": {}, "annotations": [{"completed_by": 1, "was_cancelled": False, "result": result}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "project.json")
    ...     _ = path.write_text(json.dumps([task]))
    ...     votes = read_label_studio(path, "verdict", {"yes": 1, "no": 0}, dataset="news")
    >>> votes.example_ids.tolist(), votes.voter_names, votes.votes.tolist()
    (['7'], ('1',), [[1]])
    """
    return _read(path, "Label Studio's export as JSON", _label_studio_answers, question, answers, dataset)


def _read(
    path: str | Path,
    what: str,
    given: Callable[[Record, str], Given],
    question: str,
    answers: VoteOfAnswer,
    dataset: str,
) -> VoteMatrix:
    """Return the votes of a file; `given` finds the answers to a question in one record."""
    _check_answers(answers)
    items: dict[str, int] = {}
    people: dict[str, int] = {}
    votes: dict[tuple[int, int], int] = {}
    for number, record in enumerate(_records(path, what), start=1):
        at = f"record {number} of {str(path)!r}"
        try:
            item, said = str(record["id"]), list(given(record, question))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise InputError(f"`path` must be {what}. Got another layout in {at}. Export it anew.") from None
        if not is_storable(item):
            raise InputError(
                f"`path` must name items in plain text, without NUL. Got {shown(item)} in {at}. Export it anew."
            )
        if item in items:
            raise InputError(f"`path` must name each item once. Got {shown(item)} again in {at}.")
        row = items.setdefault(item, len(items))
        for person, answer in said:
            key = row, people.setdefault(person, len(people))
            if key in votes:
                raise InputError(f"`path` must have one answer of a person. Got two of {shown(person)} in {at}.")
            votes[key] = _vote(answer, answers, at)
    if not votes:
        raise InputError(f"`question` must be one that somebody answered. Got {question!r} for {str(path)!r}.")
    matrix = np.full((len(items), len(people)), ABSTAIN, dtype=np.int8)
    for key, vote in votes.items():
        matrix[key] = vote
    return VoteMatrix(matrix, list(items), list(people), [dataset] * len(items), np.full(len(items), ABSTAIN))


def _records(path: str | Path, what: str) -> Sequence[Record]:
    try:
        found = json.loads(read_bytes(str(path), "path"))
    except OSError as error:
        raise InputError(f"`path` must be a readable file. Got {str(path)!r}: {error.strerror}.") from None
    except RecursionError:
        raise InputError(f"`path` must be {what}. Got {str(path)!r}: nested too deeply.") from None
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"`path` must be {what}. Got {str(path)!r}: {reason}. Export it anew.") from None
    if not isinstance(found, list) or not found:
        raise InputError(f"`path` must be {what}, a list of records. Got {shown(found)} in {str(path)!r}.")
    return found


def _check_answers(answers: VoteOfAnswer) -> None:
    wrong = next((vote for vote in answers.values() if vote not in (0, 1, None)), None)
    if wrong is not None or not answers:
        raise InputError(
            f"`answers` must give 1, 0 or None for each answer. Got {wrong if answers else 'no answer'!r}."
        )


def _vote(answer: object, answers: VoteOfAnswer, at: str) -> int:
    """Return the vote that an answer is."""
    if not isinstance(answer, str) or answer not in answers:
        known = ", ".join(map(shown, answers))
        raise InputError(f"`answers` must name every answer, now {known}. Got {shown(answer)} in {at}.")
    vote = answers[answer]
    return ABSTAIN if vote is None else int(vote)


def _argilla_answers(record: Record, question: str) -> Given:
    if "responses" in record:
        for response in record["responses"].get(question, ()):
            yield str(response["user_id"]), response["value"]
        return
    _ = record["_server_id"]  # as every record has, and little else
    column = f"{question}.responses"
    people, values = record.get(f"{column}.users") or (), record.get(column) or ()
    statuses = record.get(f"{column}.status") or ["submitted"] * len(values)
    for person, value, status in zip(people, values, statuses, strict=True):
        if status == "submitted":
            yield str(person), value


def _label_studio_answers(task: Record, question: str) -> Given:
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        by = annotation["completed_by"]
        person = str(by.get("email") or by["id"]) if isinstance(by, Mapping) else str(by)
        for part in annotation["result"]:
            if part.get("from_name") == question and part.get("type") == "choices":
                choices = part["value"]["choices"]
                yield person, choices[0] if len(choices) == 1 else choices

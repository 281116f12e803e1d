"""The files of labels: tables for other commands, written again whenever the log has grown."""

from dataclasses import dataclass
from pathlib import Path

from deep._files import JsonObject, check_out
from deep.datasets import (
    AnswerBook,
    keep_other_labels,
    label_log_files,
    read_label_log,
    write_annotations,
    write_labels,
)
from deep.exceptions import InputError


@dataclass(frozen=True)
class LabelFolder:
    """The files of one round of labeling.

    Parameters
    ----------
    labels : Path
        A .csv with the label of most people for each item, for ``deep fit --labels``; the others stand beside it.
    """

    labels: Path

    @property
    def log(self) -> Path:
        """Return the log of everything that happened."""
        return self.labels.with_suffix(".jsonl")

    @property
    def annotations(self) -> Path:
        """Return the labels of each person, for ``deep label agreement``."""
        return self.labels.with_suffix(".annotations.csv")

    def check(self) -> None:
        """Raise where labels that somebody else wrote would be lost.

        Raises
        ------
        InputError
            A table of labels is there without a log, or the place cannot be written to.
        """
        check_out(self.labels, [".csv"])
        taken = [path for path in (self.labels, self.annotations) if path.exists()]
        if taken and not any(file.stat().st_size for file in label_log_files(self.log)):
            raise InputError(
                f"`out` must be a new file, or one that `deep label` wrote. Got {str(taken[0])!r}, which has no log "
                f"{self.log.name!r} beside it. Name another, and give the labels in it as --labels."
            )


def export_labels(log: str | Path, out: str | Path | None = None) -> JsonObject:
    """Write the tables of a log.

    Parameters
    ----------
    log : path
        Also one that is in use.
    out : path, optional
        See :class:`LabelFolder`; default: beside the log.

    Returns
    -------
    dict
        How many labels there are, and the files.

    Raises
    ------
    InputError
        There is no log, or the tables cannot be written.
    """
    book, told = read_label_log(log)
    files = LabelFolder(Path(log).with_suffix(".csv") if out is None else Path(out))
    check_out(files.labels, [".csv"])
    kept = keep_other_labels(book, files.labels, files.annotations)
    write_labels(book, files.labels)
    write_annotations(book, files.annotations)
    found = label_summary(book, files)
    return found | {"problem": " ".join(filter(None, (told, kept))), "files": found["files"] | {"log": str(log)}}


def label_summary(book: AnswerBook, files: LabelFolder) -> JsonObject:
    """Return how many labels there are, and the files."""
    given = {who: sum(answer.label is not None for answer in own.values()) for who, own in book.answers.items()}
    return {
        "items": len(book.queue),
        "complete": sum(book.missing(item) <= 0 for item in book.queue),
        "labels": len(book.majority()),
        "ties": len(book.ties()),
        "people": {who: n for who, n in given.items() if n},
        "after_reveal": sum(answer.after_reveal for _, _, answer in book.labels()),
        "files": {"labels": str(files.labels), "annotations": str(files.annotations), "log": str(files.log)},
    }

"""What is to be labeled: one dataset, the model that proposes its items, their texts, and what judges said of them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from shlex import quote

import numpy as np

from deep import datasets
from deep._util.checks import Labels
from deep._util.files import JsonObject, check_out
from deep._util.names import resolve_dataset
from deep.console import Results
from deep.datasets import Item
from deep.evaluate import Target, canary_report, read_votes_for_model, targets_of
from deep.exceptions import InputError
from deep.integrations.labeling import _label_log
from deep.integrations.labeling._label_book import AnswerBook, keep_other_labels, write_annotations, write_labels
from deep.model import Model, Scores, expected_label_error, fit, labels_needed, load, propose_labels
from deep.records import Example
from deep.report import read_judge_texts


@dataclass(frozen=True, eq=False)
class LabelSubject:
    """One dataset of which items are to be labeled.

    Parameters
    ----------
    model : Model
        Not corrected by labels of this dataset.
    target : Target
        All items with their votes, and the labels that were given elsewhere.
    tables : tuple of str
        The tables of votes, beside which judgments stand.
    examples : str or Path, optional
        In place of what the votes remember.
    columns : mapping of str to str, optional
        Field to column of `examples`.
    passed : frozenset of Item, optional
        Items that are not proposed, since they have labels beside their votes.
    model_file : str
        Empty where the model was learned from the votes alone.
    """

    model: Model
    target: Target
    tables: tuple[str, ...] = ()
    examples: str | Path | None = None
    columns: Mapping[str, str] | None = None
    passed: frozenset[Item] = frozenset()
    model_file: str = ""

    def commands(self, labels: Path) -> list[str]:
        """Return the commands that use the table of labels: a test and a correction of P, or a first model."""
        votes, table = " ".join(map(quote, self.tables)), quote(str(labels))
        if not self.model_file:
            return [f"deep fit {votes} --labels {table} --out model.json"]
        model = quote(self.model_file)
        return [
            f"deep check {model} --votes {votes} --labels {table}",
            f"deep adapt {model} --votes {votes} --labels {table} --out mine.json",
        ]

    @cached_property
    def rows(self) -> dict[Item, int]:
        """Return the row of each item."""
        votes = self.target.votes
        keys = zip(map(str, votes.datasets), map(str, votes.item_ids), strict=True)
        return {item: row for row, item in enumerate(keys)}

    @cached_property
    def scores(self) -> Scores:
        """Return P(consistent) of every row, by the votes and no label."""
        return self.model.scores_of(self.target.votes)

    def propose(self, n: int, *, taken: Collection[Item] = (), random_state: int = 0) -> list[Item]:
        """Return `n` items to label, none of which has a label or is `taken`."""
        check_uncorrected(self.model)
        labeled = np.flatnonzero(self._joined(dict.fromkeys([*taken, *self.passed], 0)) >= 0)
        p, misfit = self.scores.p_consistent, self.model.misfit
        result = propose_labels(p, misfit, n, labeled=labeled, random_state=random_state)
        name = self.target.name
        return [(name, str(item)) for item in self.target.votes.item_ids[result.rows]]

    def unlabeled(self, taken: Collection[Item]) -> list[Item]:
        """Return the items that :meth:`propose` chooses from."""
        labels = self._joined(dict.fromkeys([*taken, *self.passed], 0))
        return [item for item, row in self.rows.items() if labels[row] < 0]

    def labeled(self, labels: Mapping[Item, int]) -> Target:
        """Return the dataset with these labels, and those that were given elsewhere."""
        votes = self.target.votes
        return replace(self.target, votes=replace(votes, labels=self._joined(labels)))

    def expected_error(self, labels: Collection[Item]) -> float:
        """Return how far P is expected to be off on average with labels of these items, and those given elsewhere."""
        labeled_rows = np.flatnonzero(self._joined(dict.fromkeys(labels, 0)) >= 0)
        return expected_label_error(self.scores.p_consistent, self.model.misfit, labeled_rows)

    def canary(self, labels: Mapping[Item, int]) -> dict[str, object] | None:
        """Test whether labels agree with P as the model gives it without them; None without a label."""
        target = self.labeled(labels)
        return canary_report(self.model, target) if target.n_labels else None

    def texts(self, items: Sequence[Item]) -> dict[Item, Example]:
        """Return the texts of items.

        Raises
        ------
        InputError
            One has none.
        """
        result = datasets.read_texts(self.tables, items, examples=self.examples, columns=self.columns)
        missing = [item for item in items if item not in result.examples]
        if missing:
            why = next(iter(result.notes), "")
            raise InputError(
                f"`examples` must hold the texts of all {len(items)} items to label. Got none for {len(missing)}, the "
                f"first {missing[0][1]!r} of {missing[0][0]!r}. {why}"
            )
        return dict(result.examples)

    def found_texts(self, items: Sequence[Item]) -> dict[Item, Example]:
        """Return the texts of those items that have some."""
        return dict(datasets.read_texts(self.tables, items, examples=self.examples, columns=self.columns).examples)

    def judged(self, items: Sequence[Item], examples: Mapping[Item, Example]) -> dict[Item, JsonObject]:
        """Return P, interval and votes of items, with the words of judges, as the script of a page reads them."""
        votes = self.target.votes
        p, (low, high) = self.scores.p_consistent, self.scores.interval()
        details = read_judge_texts(self.tables, items, votes.voter_names, examples)
        return {
            item: {
                "p": float(p[row]),
                "low": float(low[row]),
                "high": float(high[row]),
                "voters": list(votes.voter_names),
                "votes": "".join("-" if vote < 0 else str(vote) for vote in votes.votes[row]),
                "said": details.get(item, {}),
            }
            for item in items
            for row in [self.rows[item]]
        }

    def _joined(self, labels: Mapping[Item, int]) -> Labels:
        all_labels = np.array(self.target.votes.labels)
        for item, label in labels.items():
            if all_labels[self.rows[item]] < 0:
                all_labels[self.rows[item]] = label
        return all_labels


def read_label_subject(
    tables: Sequence[str],
    *,
    model: str | Path | None = None,
    labels: Sequence[str] = (),
    scores: Sequence[str] = (),
    dataset: str | None = None,
    examples: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> LabelSubject:
    """Read the dataset to be labeled.

    Parameters
    ----------
    tables : sequence of str
        Tables of votes. Items that have labels beside the votes are passed over, and the labels not used.
    model : path, optional
        A model file; default: one that is learned from the votes alone.
    labels : sequence of str, optional
        Tables of labels that were given elsewhere; these items are passed over.
    scores : sequence of str, optional
        Tables of soft scores, where the model was fitted on some.
    dataset : str, optional
        Which one; needed where the votes are of several, and there are no labels.
    examples : path, optional
        A benchmark or a file with the texts, in place of what the votes remember.
    columns : mapping of str to str, optional
        Field to column of `examples`.

    Raises
    ------
    InputError
        A file cannot be used, or it is not clear which dataset is meant.
    """
    file_model = None if model is None else load(model)
    every = datasets.read_votes(tables) if file_model is None else read_votes_for_model(file_model, tables)
    fitted = file_model
    if fitted is None:  # one of the votes alone
        own = every
        if dataset is not None:
            own = own.rows(own.datasets == resolve_dataset(dataset, own.dataset_names, param="dataset"))
        fitted = fit(replace(own, labels=np.full(len(own.labels), -1)))
    targets = targets_of(fitted, every, labels, scores)
    names = [target.name for target in targets]
    if dataset is not None:
        name = resolve_dataset(dataset, names, param="dataset")
    elif len(names) > 1:
        raise InputError(f"`dataset` must be given where votes are of several. Got none of {', '.join(names)}.")
    else:
        (name,) = names
    beside = every.rows((every.datasets == name) & (every.labels >= 0))
    passed = frozenset((name, str(item)) for item in beside.item_ids)
    return LabelSubject(fitted, targets[names.index(name)], tuple(tables), examples, columns, passed, str(model or ""))


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
        return self.labels.with_suffix(_label_log.LOG_ENDING)

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
        files = [path for path in (self.labels, self.annotations) if path.exists()]
        if files and not any(file.is_file() and file.stat().st_size for file in _label_log.label_log_files(self.log)):
            raise InputError(
                f"`out` must be a new file, or one that `deep label` wrote. Got {str(files[0])!r}, which has no log "
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
    book, notes = _label_log.read_label_log(log)
    place = _label_log.log_place(log)
    beside = place.with_name(place.name.removesuffix(_label_log.LOG_ENDING) + ".csv")
    files = LabelFolder(beside if out is None else Path(out))
    check_out(files.labels, [".csv"])
    remark = keep_other_labels(book, files.labels, files.annotations)
    write_labels(book, files.labels)
    write_annotations(book, files.annotations)
    result = label_summary(book, files)
    return result | {"problem": " ".join(filter(None, (notes, remark))), "files": result["files"] | {"log": str(place)}}


def label_summary(book: AnswerBook, files: LabelFolder) -> JsonObject:
    """Return how many labels there are, and the files."""
    counts = {who: sum(answer.label is not None for answer in own.values()) for who, own in book.answers.items()}
    return {
        "items": len(book.queue),
        "complete": sum(book.missing(item) <= 0 for item in book.queue),
        "labels": len(book.majority()),
        "ties": len(book.ties()),
        "people": {who: n for who, n in counts.items() if n},
        "after_reveal": sum(answer.after_reveal for _, _, answer in book.labels()),
        "files": {"labels": str(files.labels), "annotations": str(files.annotations), "log": str(files.log)},
    }


def label_lines(results: Results, *, told: str) -> Iterator[str]:
    """Yield lines on the dataset to label; `told` says what the start found amiss in the log."""
    if told:
        yield f"{results['files']['log']}: {told}"
    yield from ([results["problem"]] if results["problem"] else [])
    done = _counted(results["complete"], "of them is", "of them are")
    yield f"{results['dataset']}: {_counted(results['items'], 'item', 'items')} to label, {done} done"
    yield f"labels: {results['files']['labels']}, saved after each label"


def labeled_lines(results: Results) -> Iterator[str]:
    """Yield lines on the labels that there are, and their files."""
    by = ", ".join(f"{who} {n}" for who, n in results["people"].items()) or "nobody"
    yield f"{results['complete']} of {results['items']} items are done; labels by {by}"
    if results["ties"]:
        yield f"  on {_counted(results['ties'], 'item', 'items')} people are tied, and get no label"
    if results["after_reveal"]:
        phrase = _counted(results["after_reveal"], "label was", "labels were")
        yield f"  {phrase} given after looking at the votes (marked in the annotations)"
    yield from ([f"  {results['problem']}"] if results["problem"] else [])
    yield f"labels of {_counted(results['labels'], 'item', 'items')}: {results['files']['labels']}"
    yield from (f"{name}: {results['files'][name]}" for name in ("annotations", "log"))


def _counted(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"


def check_uncorrected(model: Model) -> None:
    """Raise where labels have corrected a model, by which no items to label can then be proposed."""
    if model.correction is not None:
        raise InputError(
            f"`model` must not have been corrected by labels. Got one corrected by {model.correction.n_labels}. Use "
            "the model it was made from."
        )


def label_proposal(fitted: Model, target: Target, n: int, *, random_state: int = 0) -> dict[str, object]:
    """Propose items of one dataset to label, and the error expected then; labeled items are passed over.

    Parameters
    ----------
    fitted : Model
        Not corrected by labels of its target.
    target : Target
        The dataset, with the labels that there are.
    n : int
        Items to propose.
    random_state : int, default=0
        Seed of the draw of items, and of the simulations that `labels_needed` comes from.

    Returns
    -------
    dict
        JSON values; `labels_needed` is how many the canary needs, by power.

    Raises
    ------
    InputError
        The model was corrected by labels, or there are fewer unlabeled items than `n`.
    """
    check_uncorrected(fitted)
    votes = target.votes
    result = fitted.scores_of(votes)
    p, labeled = result.p_consistent, np.flatnonzero(votes.labels >= 0)
    proposal = propose_labels(p, fitted.misfit, n, labeled=labeled, random_state=random_state)
    needed = labels_needed(p, fitted.misfit, random_state=random_state)
    return {
        "dataset": target.name,
        "prior": asdict(result.share),
        "expected_error_before": proposal.error_before,
        "expected_error_after": proposal.error_after,
        "labels_needed": {str(power): size for power, size in needed.items()},
        "items": [{"item_id": str(votes.item_ids[row]), "p_consistent": float(p[row])} for row in proposal.rows],
    }

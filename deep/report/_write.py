"""A report of any sources, as `deep report` writes it and a notebook shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from traceback import extract_tb

import numpy.typing as npt

from deep._util.files import atomic_file, check_out
from deep.datasets import LabelsGiven, as_labels, is_paths
from deep.evaluate import DatasetVerdict
from deep.exceptions import InputError
from deep.model import Model, VotesLike, as_vote_matrix
from deep.report._chapters import REPORT_FILE_NAME, build_page
from deep.report._items import TextChoice
from deep.report._page import page_html
from deep.report._sources import GivenShare, LabelFiles, ReportMaterial, read_material, score_by, with_systems
from deep.report._verdict import find_drift, methods_of, verdict_of


@dataclass(frozen=True)
class ShownReport:
    """A report that a notebook shows, and a terminal its verdict.

    Parameters
    ----------
    html : str
        The page.
    verdict : DatasetVerdict, optional
        Where there are items.
    """

    html: str
    verdict: DatasetVerdict | None = None

    def __repr__(self) -> str:
        return type(self).__name__ if self.verdict is None else "\n".join(self.verdict.lines())

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 40em; border: 0"></iframe>'

    def save(self, out: str | Path) -> Path:
        """Write the page to a file that ends in .html, and return its path."""
        path = check_out(Path(out), [".html"])
        with atomic_file(path) as scratch:
            scratch.write_text(self.html, encoding="utf-8")
        return path


def report(
    model: Model,
    votes: VotesLike,
    labels: LabelsGiven | None = None,
    *,
    prior: float | None = None,
    scores: npt.ArrayLike | None = None,
) -> ShownReport:
    """Return the report of a model on votes, as a notebook shows it: `deep.report(model, votes)`.

    Parameters
    ----------
    model : Model
        Of :func:`deep.fit` or :func:`deep.adapt`; gives the items P.
    votes : VoteMatrix, data frame of pandas, Polars or pyarrow, or path or sequence of paths
        The items, with labels where there are any.
    labels : array-like, data frame or path, optional
        In place of those beside the votes.
    prior : float, optional
        The share of consistent items, where it is known; by default it is estimated for each dataset.
    scores : array-like of shape (n_items, n_scorers), optional
        Soft scores as the model names them, where it was fitted on some; without them P rests on the votes alone.
    """
    page = build_page(_report_material(model, votes, labels, prior, scores), TextChoice())
    return ShownReport(page_html(page).decode("utf-8"), page.verdict)


def verdict(
    model: Model,
    votes: VotesLike,
    labels: LabelsGiven | None = None,
    *,
    prior: float | None = None,
    scores: npt.ArrayLike | None = None,
) -> DatasetVerdict:
    """Return the verdict that a report begins with: claims that are suspect, whether P holds, and the next step.

    Parameters
    ----------
    model : Model
        As in :func:`report`.
    votes, labels, prior, scores
        As in :func:`report`.
    """
    material = _report_material(model, votes, labels, prior, scores)
    result = verdict_of(material, methods_of(material), find_drift(material))
    assert result is not None  # there are votes
    return result


def _report_material(
    model: Model,
    votes: VotesLike,
    labels: LabelsGiven | None,
    prior: float | None,
    scores: npt.ArrayLike | None,
) -> ReportMaterial:
    """Return the material of a report on a model and votes in memory."""
    matrix = as_vote_matrix(model, votes)
    matrix = matrix if labels is None else as_labels(labels, matrix, votes)
    tables = tuple(map(str, [votes] if isinstance(votes, str | Path) else votes)) if is_paths(votes) else ()
    if scores is not None:
        matrix = as_vote_matrix(model, model.beside(matrix, scores))
    scored = score_by(model, matrix, prior)
    return ReportMaterial("Report", model=model, scored=scored, tables=tables)


def default_report_path(sources: Sequence[str]) -> Path:
    """Return where a report is written unless a user says otherwise: in the folder of the run, else here."""
    return next((Path(source) for source in sources if Path(source).is_dir()), Path()) / REPORT_FILE_NAME


def write_report(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    labels: LabelFiles | None = None,
    known: GivenShare | None = None,
    examples: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    texts: bool = True,
    compare: str | None = None,
    ledger: str | None = None,
) -> Path:
    r"""Write one HTML file that shows a run, a model or votes, and loads nothing from outside.

    Parameters
    ----------
    sources : sequence of path
        The folder of a run, or a model file, or neither, and tables of votes.
    out : path
        Ends in .html.
    labels : LabelFiles, optional
        In place of the labels beside the votes; of several people that of most of them counts.
    known : GivenShare, optional
        The share of consistent items, and tables of soft scores; of a model with votes.
    examples : path, optional
        A benchmark or a file of examples, in place of what the tables of votes remember.
    columns : mapping of str to str, optional
        Field to column of `examples`.
    texts : bool, default=True
        False for a report without sources, claims, rationales and evidence.
    compare : str, optional
        A column of the votes that names the system behind each item, or 'file', as in
        :func:`deep.evaluate.read_systems`; of a model with votes.
    ledger : str, optional
        The ledger whose prompts and replies an opened item shows.

    Returns
    -------
    Path
        `out`.

    Raises
    ------
    InputError
        A source cannot be used, or `out` cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from deep.report import write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "votes.csv")
    ...     _ = table.write_text("dataset,item_id,label,strict,lenient\nnews,a,1,1,1\nnews,b,0,0,1\n")
    ...     "<h1>Votes: votes.csv</h1>" in write_report([table], Path(folder, "report.html")).read_text()
    True
    """
    path = check_out(Path(out), [".html"])
    try:
        material = with_systems(read_material(sources, labels, known), compare)
        page = page_html(build_page(material, TextChoice(examples, columns, texts, ledger)))
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        described = [
            str(source) for source in map(Path, sources) if source.is_dir() or source.suffix.lower() == ".json"
        ]
        if not described:
            raise  # tables of votes have one shape, which was checked: a fault of deep's
        frame = extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"`sources` must be as deep wrote them. Got a {type(error).__name__} ({error}) at "
            f"{Path(frame.filename).name}:{frame.lineno} in {', '.join(map(repr, described))}. If somebody changed "
            "it, run or fit it again. If not, this is a bug of deep: report it with this line."
        ) from error
    with atomic_file(path) as scratch:
        scratch.write_bytes(page)
    return path

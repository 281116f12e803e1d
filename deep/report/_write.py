"""A report written: of any sources by `deep report`, and of its own folder by every study."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

from deep._util.files import check_out, whole_file, whole_folder
from deep.exceptions import InputError
from deep.report._chapters import SIMULATED, headline_chapter, prior_chapter, reliability_chapter, watch_chapter
from deep.report._items import TextChoice, items_with_texts, order_of, sample_sentence
from deep.report._methods import methods_chapter, methods_of
from deep.report._page import Chapter, Page, page_html, study_chapters
from deep.report._panel import panel_chapter
from deep.report._sources import LabelFiles, ReportMaterial, read_material

REPORT = "report.html"
"""The report of a run, in its folder."""


def standard_place(sources: Sequence[str]) -> Path:
    """Return where a report is written unless a user says otherwise: in the folder of the run, else here."""
    return next((Path(source) for source in sources if Path(source).is_dir()), Path()) / REPORT


def write_report(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    labels: LabelFiles | None = None,
    examples: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    texts: bool = True,
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
    examples : path, optional
        A benchmark or a file of examples, in place of what the tables of votes remember.
    columns : mapping of str to str, optional
        Field to column of `examples`.
    texts : bool, default=True
        False for a report without sources, claims, rationales and evidence.

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
        material = read_material(sources, labels)
        page = page_html(page_of(material, TextChoice(examples, columns, texts)))
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
            f"{Path(frame.filename).name}:{frame.lineno} in {', '.join(map(repr, described))}. Where somebody changed "
            "that, run or fit it again; where nobody did, it is a fault of deep: report it with this line."
        ) from error
    with whole_file(path) as scratch:
        scratch.write_bytes(page)
    return path


@contextmanager
def reported_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` if nothing goes wrong, with a report of what is in it."""
    with whole_folder(folder) as scratch:
        yield scratch
        material = replace(read_material([scratch]), title=f"Run: {folder.name}")
        (scratch / REPORT).write_bytes(page_html(page_of(material, TextChoice())))


def report_line(folder: Path) -> str:
    """Return the last line of a study.

    Examples
    --------
    >>> from deep.report import report_line
    >>> print(report_line(Path("runs/fect")))
    report: open runs/fect/report.html
    """
    return f"report: open {(folder / REPORT).as_posix()}"


def page_of(material: ReportMaterial, choice: TextChoice) -> Page:
    """Return the report of some material; of a study that is no hold-out, its own tables and pictures alone."""
    own = [] if material.folder is None else study_chapters(material.folder)
    if material.folder is not None and not material.runs:
        about = [SIMULATED] if material.simulated else []
        return Page(material.title, [*about, "Texts in this file: the tables and pictures of the study, no more."], own)
    methods = methods_of(material)
    chapters = [
        headline_chapter(material, methods),
        reliability_chapter(material),
        methods_chapter(methods),
        panel_chapter(material),
        prior_chapter(material),
        watch_chapter(material),
        *own,
    ]
    if material.scored is None:
        says = ["There are no items: give votes, or a run that keeps its scores."]
        return Page(material.title, ["Texts in this file: none."], [*chapters, Chapter("items", "Items", says)])
    order = order_of(material.scored)
    rows, items, texts = items_with_texts(material, order, choice)
    chapter = Chapter("items", "Items", [sample_sentence(len(rows), len(order)), *texts])
    return Page(material.title, texts[:1], [*chapters, chapter], items)

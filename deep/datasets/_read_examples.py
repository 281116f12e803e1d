"""Examples by a benchmark's name or a file's path."""

from collections.abc import Mapping
from pathlib import Path

from deep.datasets._examples import ExampleFile, Examples
from deep.datasets._rows import ENDINGS, ending_of
from deep.datasets.benchmarks import BENCHMARKS, BenchmarkExamples, find_benchmark, require_folder
from deep.exceptions import InputError


def read_examples(
    name_or_path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    dataset: str | None = None,
    main_only: bool = False,
    require_source: bool = True,
) -> Examples:
    """Return the examples of a benchmark or of a file, to be gone through as often as wanted.

    Parameters
    ----------
    name_or_path : str or Path
        A file that exists or whose name ends like one (see `ExampleFile`), or else the name of a benchmark or of one
        of its datasets, in any spelling: ``fect``, ``tofueval-mediasum``, ``summedits``, ``summedits-news``.
    columns : mapping of str to str, optional
        Field to column, where a file's column has another name.
    dataset : str, optional
        The dataset of a file's rows that name none; default: the file's name without its ending.
    main_only : bool
        TofuEval: leave out summaries of marginal topics.
    require_source : bool
        Raise at an example whose source is not published with the benchmark; False to count such examples only.

    Raises
    ------
    InputError
        There is no such file or benchmark, its files are not here (the message says what to do), or an option does
        not fit.

    Examples
    --------
    >>> from deep.datasets import read_examples
    >>> read_examples("no-such-file.csv")
    Traceback (most recent call last):
    deep.exceptions.InputError: `examples` must be a file that ends in ... Got 'no-such-file.csv', which is not there...
    """
    path = Path(name_or_path)
    if path.is_file() or ending_of(path) is not None or len(path.parts) > 1:
        if main_only:
            raise InputError("`main_only` must be given with the name of a benchmark. Got a file. Leave it out.")
        return ExampleFile(path, columns=columns, dataset=dataset)
    if columns or dataset:
        given = "columns" if columns else "dataset"
        raise InputError(f"`{given}` must be given with a file. Got it with {str(name_or_path)!r}. Leave it out.")
    return _load_benchmark(str(name_or_path), main_only=main_only, require_source=require_source)


def _load_benchmark(name: str, *, main_only: bool, require_source: bool) -> BenchmarkExamples:
    try:
        benchmark, part = find_benchmark(name, param="examples")
    except InputError as error:
        if "could be any of" in str(error):
            raise
        raise InputError(
            f"`examples` must be a file that ends in one of {', '.join(ENDINGS)}, or one of "
            f"{', '.join(sorted(BENCHMARKS))}. Got {name!r}."
        ) from None
    folder = require_folder(benchmark)
    return BenchmarkExamples(benchmark, folder, dataset=part, main_only=main_only, require_source=require_source)

"""Benchmarks by name: the entry of `benchmarks.toml`, and the function that reads its files."""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.resources import files

from deep._files import JsonObject
from deep.datasets._registry import resolve_dataset
from deep.datasets.benchmarks._record import Benchmark, BenchmarkFile
from deep.datasets.benchmarks.aggrefact import read_aggrefact
from deep.datasets.benchmarks.cognibench import count_cognibench, read_cognibench
from deep.datasets.benchmarks.fect import read_fect
from deep.datasets.benchmarks.halueval import read_halueval
from deep.datasets.benchmarks.llm_aggrefact import read_llm_aggrefact
from deep.datasets.benchmarks.ragtruth import read_ragtruth
from deep.datasets.benchmarks.summedits import read_summedits
from deep.datasets.benchmarks.tofueval import read_tofueval
from deep.records import Example

READERS: dict[str, Callable[..., Iterator[Example]]] = {
    "aggrefact-cnn": partial(read_aggrefact, origin="cnndm", name="aggrefact-cnn"),
    "aggrefact-xsum": partial(read_aggrefact, origin="xsum", name="aggrefact-xsum"),
    "cognibench": read_cognibench,
    "fect": read_fect,
    "halueval-summarization": read_halueval,
    "llm-aggrefact": read_llm_aggrefact,
    "ragtruth": read_ragtruth,
    "summedits": read_summedits,
    "tofueval-mediasum": partial(read_tofueval, part="mediasum"),
    "tofueval-meetingbank": partial(read_tofueval, part="meetingbank"),
}

COUNTS = {"cognibench": count_cognibench}
"""Functions that count more than examples."""


def _file(entry: JsonObject, raw: str) -> BenchmarkFile:
    url = None if "by_hand" in entry else entry.pop("raw", raw) + entry["name"]
    return BenchmarkFile(url=url, **entry)


def _benchmark(name: str, entry: JsonObject) -> Benchmark:
    raw = entry.pop("raw", "")
    held = tuple(_file(file, raw) for file in entry.pop("files"))
    datasets = tuple(entry.pop("datasets", ()))
    return Benchmark(name=name, files=held, datasets=datasets, read=READERS[name], count=COUNTS.get(name), **entry)


_TOML = files("deep.datasets.benchmarks").joinpath("benchmarks.toml").read_text(encoding="utf-8")
BENCHMARKS = {name: _benchmark(name, entry) for name, entry in tomllib.loads(_TOML).items()}
"""All benchmarks by name, sorted."""


def find_benchmark(name: str, *, param: str = "name") -> tuple[Benchmark, str | None]:
    """Return the benchmark that a name means, and the one of its datasets that it means, if not all.

    Parameters
    ----------
    name : str
        Of a benchmark or of one of its datasets, in any spelling that `resolve_dataset` understands.
    param : str
        What to call the parameter in an error.

    Raises
    ------
    InputError
        No benchmark has that name, or several do.

    Examples
    --------
    >>> from deep.datasets.benchmarks.aggrefact import read_aggrefact
    from deep.datasets.benchmarks.cognibench import count_cognibench, read_cognibench
    from deep.datasets.benchmarks.fect import read_fect
    from deep.datasets.benchmarks.halueval import read_halueval
    from deep.datasets.benchmarks.llm_aggrefact import read_llm_aggrefact
    from deep.datasets.benchmarks.ragtruth import read_ragtruth
    from deep.datasets.benchmarks.summedits import read_summedits
    from deep.datasets.benchmarks.tofueval import read_tofueval
    >>> benchmark, dataset = find_benchmark("SummEdits-News")
    >>> benchmark.name, dataset
    ('summedits', 'summedits-news')
    >>> find_benchmark("xsum")[0].name
    'aggrefact-xsum'
    """
    owners = {dataset: b for b in BENCHMARKS.values() for dataset in b.datasets} | BENCHMARKS
    found = resolve_dataset(name, owners, param=param)
    return owners[found], None if found in BENCHMARKS else found


def licence_terms(datasets: Iterable[str]) -> dict[str, str]:
    """Return the licences of datasets where they are known, and whether they allow commercial use."""
    known = {name: b.terms for b in BENCHMARKS.values() for name in b.datasets or (b.name,)}
    return {name: known[name] for name in datasets if name in known}

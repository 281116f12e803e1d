"""Benchmarks by name."""

from deep.datasets._registry import resolve_dataset
from deep.datasets.benchmarks._record import Benchmark
from deep.datasets.benchmarks.aggrefact import AGGREFACT_CNN, AGGREFACT_XSUM
from deep.datasets.benchmarks.cognibench import COGNIBENCH
from deep.datasets.benchmarks.fect import FECT
from deep.datasets.benchmarks.halueval import HALUEVAL_SUMMARIZATION
from deep.datasets.benchmarks.llm_aggrefact import LLM_AGGREFACT
from deep.datasets.benchmarks.ragtruth import RAGTRUTH
from deep.datasets.benchmarks.summedits import SUMMEDITS
from deep.datasets.benchmarks.tofueval import TOFUEVAL_MEDIASUM, TOFUEVAL_MEETINGBANK

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        AGGREFACT_CNN,
        AGGREFACT_XSUM,
        COGNIBENCH,
        FECT,
        HALUEVAL_SUMMARIZATION,
        LLM_AGGREFACT,
        RAGTRUTH,
        SUMMEDITS,
        TOFUEVAL_MEDIASUM,
        TOFUEVAL_MEETINGBANK,
    )
}
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
    >>> from deep.datasets.benchmarks import find_benchmark
    >>> benchmark, dataset = find_benchmark("SummEdits-News")
    >>> benchmark.name, dataset
    ('summedits', 'summedits-news')
    >>> find_benchmark("xsum")[0].name
    'aggrefact-xsum'
    """
    owners = {dataset: b for b in BENCHMARKS.values() for dataset in b.datasets} | BENCHMARKS
    found = resolve_dataset(name, owners, param=param)
    return owners[found], None if found in BENCHMARKS else found


__all__ = ["BENCHMARKS", "find_benchmark"]

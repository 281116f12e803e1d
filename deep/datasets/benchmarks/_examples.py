"""The examples of a benchmark, with the same face as those of a file."""

from collections.abc import Iterator
from pathlib import Path

from deep.datasets._examples import Examples
from deep.datasets.benchmarks._record import Benchmark
from deep.exceptions import InputError
from deep.records import Example


class BenchmarkExamples(Examples):
    """The examples of a benchmark whose files are in `folder`, read anew each time.

    Parameters
    ----------
    benchmark : Benchmark
    folder : Path
    dataset : str, optional
        Only this one of its datasets.
    main_only : bool
        Leave out what is about marginal topics, where the benchmark knows of topics.
    require_source : bool
        Raise at an example whose source is not there; a judge needs it, a count does not.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        folder: Path,
        *,
        dataset: str | None = None,
        main_only: bool = False,
        require_source: bool = True,
    ) -> None:
        if main_only and not benchmark.topics:
            raise InputError(
                f"`main_only` must be given for a benchmark with main and marginal topics. Got {benchmark.name!r}. "
                "Leave it out."
            )
        self.benchmark, self.folder = benchmark, folder
        self.name = dataset or benchmark.name
        self.dataset = dataset
        self.main_only, self.require_source = main_only, require_source

    @property
    def origin(self) -> str:
        """The folder."""
        return repr(str(self.folder))

    def __iter__(self) -> Iterator[Example]:
        options = {"main_only": True} if self.main_only else {}
        try:
            for example in self.benchmark.read(self.folder, **options):
                if self.dataset in (None, example.dataset):
                    yield self._with_source(example)
        except InputError:
            raise
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"`examples` must be in the layout that the authors of {self.benchmark.name!r} publish. "
                f"Got {type(error).__name__} {error} in {self.origin}. Download the files again."
            ) from None

    def _with_source(self, example: Example) -> Example:
        if self.require_source and not example.source:
            remedy = next(
                (f"{file.by_hand}. Put it into {self.folder}" for file in self.benchmark.files if file.optional),
                "Download the files again",
            )
            raise InputError(
                f"`source` must be text. Got none for {example.document_id or example.example_id!r} of "
                f"{self.benchmark.name!r}. {remedy}."
            )
        return example

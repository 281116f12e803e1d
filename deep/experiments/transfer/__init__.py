"""How far P can be trusted on a dataset never seen: the pool beside its rivals, each dataset held out."""

from collections.abc import Sequence

from deep.experiments._options import guarded

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its parts are loaded only then, so that a worker process loads little."""
    return guarded(_load_and_run, argv)


def _load_and_run(argv: Sequence[str] | None) -> int:
    from deep.experiments.transfer._command import main as run

    return run(argv)

"""An import as people and programs read it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from deep._text import table
from deep.experiments.printed._import import ImportedPrompt, PaperImport


def import_results(found: PaperImport, paths: Sequence[Path]) -> dict[str, object]:
    """Return an import as JSON holds it: each prompt with its file and the words that differ, and what is missing."""
    prompts = [
        {"id": prompt.id, "file": str(path), "verified": prompt.verified, "differs": dict(prompt.differs)}
        for prompt, path in zip(found.prompts, paths, strict=True)
    ]
    return {"paper": found.paper, "verified": found.verified, "prompts": prompts, "missing": dict(found.missing)}


def import_lines(found: PaperImport, folder: Path) -> Iterator[str]:
    """Yield a table of the prompts, and a line for each that is missing."""
    yield table([("PROMPT", "PRINT"), *((prompt.id, _says(prompt)) for prompt in found.prompts)])
    for name, passages in found.missing.items():
        yield f"{name}: not made, since the text does not hold {', '.join(passages)}"
    yield f"written to {folder}"


def _says(prompt: ImportedPrompt) -> str:
    if prompt.verified:
        return "verified"
    return "; ".join(f"not verified: {name} first differs within {words!r}" for name, words in prompt.differs)

"""Write the reference of the Python interface before the site is built: what each room exports, from its docstrings."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias, ModuleType

import numpy as np

ROOMS = [
    "deep",
    "deep.records",
    "deep.judges",
    "deep.base",
    "deep.datasets",
    "deep.prompt_pool",
    "deep.features",
    "deep.integrations.encoders",
    "deep.features.lexical",
    "deep.ensembles",
    "deep.calibration",
    "deep.model",
    "deep.evaluate",
    "deep.llm",
    "deep.asking",
    "deep.report",
    "deep.exceptions",
]
"""The public rooms, in the order of the data's way through them."""


def setup(app):
    """Have the pages written when Sphinx begins."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "python"))
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write one page a room, and the list of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for room in ROOMS:
        _write(folder / f"{room}.rst", page(importlib.import_module(room)))
    listed = "\n".join(f"   {room}" for room in ROOMS)
    _write(folder / "index.rst", f"{title('Python')}\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n")


def skip(_app, _what, name, *_) -> bool | None:
    """Leave out what scikit-learn adds to every estimator."""
    return True if name.endswith(("_request", "_metadata_routing")) else None


def page(module: ModuleType) -> str:
    """Return the page of a room: its first words, then all that it exports."""
    (head, *rest) = inspect.getdoc(module).split("\n\n")
    return "\n\n".join([title(module.__name__), head, *rest, *entries(module), ""])


def entries(module: ModuleType) -> Iterator[str]:
    """Yield the directive of each name that the room exports."""
    again = "\n   :no-index:" if module.__name__ == "deep" else ""
    yield f".. currentmodule:: {module.__name__}"
    for name in sorted(module.__all__):
        found = getattr(module, name)
        if inspect.isclass(found):
            yield f".. autoclass:: {name}\n   :members:{again}"
        elif inspect.isroutine(found):
            yield f".. autofunction:: {name}{again}"
        elif isinstance(found, GenericAlias):
            yield f".. py:type:: {name}\n   :canonical: {found}{again}"
        elif isinstance(found, np.ndarray):  # its docstring is that of all arrays
            yield f".. py:data:: {name}{again}"
        else:
            yield f".. autodata:: {name}\n   :no-value:{again}"


def title(text: str) -> str:
    """Return a heading of reStructuredText."""
    return f"{text}\n{'=' * len(text)}\n"


def _write(path: Path, text: str) -> None:
    """Write a page where it changed, so that Sphinx reads no page twice."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")

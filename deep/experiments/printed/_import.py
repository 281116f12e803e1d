"""Cut the prompts that a paper prints out of your own copy of it; status 1 if one is not as it was printed.

For instance:

  deep prompts import --paper fect --text fect.txt --out printed
      the prompts of FECT as TOML files that `deep fect --prompt` takes; fect.txt is what pdftotext writes
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import console
from deep._util.checks import check_choice
from deep._util.files import JsonObject, atomic_file, read_asset, read_bytes
from deep._util.names import format_table
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError
from deep.experiments.printed._passages import CutPassage, FoldedText, clean, cut_passage, prints_of, readings

# Of each passage that is not as printed: its name, and its first words that differ.
Differences = Sequence[tuple[str, str]]

# Keys of papers.toml that go into the prompt file as they are.
_COPIED_FIELDS = ("reasons_first", "scale", "threshold", "threshold_reason")


def prompt_toml(of: JsonObject, source: str, texts: Mapping[str, str], differs: Differences) -> str:
    """Return the file of a prompt that `deep ask --prompt` takes; `of` is its table `files` of papers.toml."""
    fields = {
        "id": of["id"],
        "version": "1",
        "family": "printed",
        "follows": _follows(of, source, differs),
        "kind": "score" if "scale" in of else "verdict",
        "output": "text",
        # The texts stand where the paper puts them, without the marks that deep's own prompts draw around them.
        "document_first": False,
        "fenced": False,
        **{name: of[name] for name in _COPIED_FIELDS if name in of},
    }
    lines = [*_notes(differs), *_values(fields), ""]
    lines += [line for role in ("system", "user") if role in of for line in _text(role, texts[of[role]])]
    if "labels" in of:
        lines += ["[labels]", *_values(of["labels"]), ""]
    # Temperature 0, as deep's own prompts have it.
    return "\n".join([*lines, "[parameters]", *_values({"temperature": 0.0, "max_tokens": of["max_tokens"]}), ""])


def steps_toml(of: JsonObject, source: str, texts: Mapping[str, str], differs: Differences) -> str:
    """Return the file of a judge's or builder's steps, which :func:`load_steps` reads."""
    about = {"id": of["id"], "version": "1", "follows": _follows(of, source, differs), "fenced": False}
    lines = [*_notes(differs), *_values(about), ""]
    for name, step in of["steps"].items():
        lines += [f"[{name}]", *_values({"reply": step["reply"]})]
        for role in ("system", "user"):
            # A `plain_` text stands in papers.toml itself, for a message that the paper does not print.
            text = texts[step[role]] if role in step else step.get(f"plain_{role}")
            lines += [] if text is None else _text(role, text)
    return "\n".join(lines)


def _follows(of: JsonObject, source: str, differs: Differences) -> str:
    return f"{source}, {of['where']}, {'not verified' if differs else 'as printed'}"


def _notes(differs: Differences) -> Iterator[str]:
    """Yield a comment that names the differences from the printed text."""
    for name, words in differs:
        yield f"# not verified: {name} first differs from the printed text within: {' '.join(words.split())}"


def _values(fields: Mapping[str, object]) -> Iterable[str]:
    for name, value in fields.items():
        # TOML's bare keys are of ASCII letters, digits, _ and -; any other is a string.
        key = name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)
        yield f"{key} = {json.dumps(value, ensure_ascii=False)}"


def _text(role: str, text: str) -> Iterator[str]:
    # The quotes stand on lines of their own, as in deep's own prompt files, so that a text ends with a newline.
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    yield from (f'{role} = """', escaped, '"""', "")


PAPERS = ("cognibench", "deep", "fect", "probe")
"""The papers whose printed prompts can be imported."""

# The messages of a prompt or step, each a passage of the paper.
_ROLES = ("system", "user")


@dataclass(frozen=True, slots=True)
class ImportedPrompt:
    """A prompt file made of passages of a paper.

    Parameters
    ----------
    id : str
        Id of the prompt; its file is ID.toml, whose path ``--prompt`` takes.
    verified : bool
        Whether the print of every passage fits.
    differs : tuple of (str, str)
        The name of each passage whose print does not fit, and its first words that differ.
    toml : str
        The file.
    """

    id: str
    verified: bool
    differs: tuple[tuple[str, str], ...]
    toml: str


@dataclass(frozen=True, slots=True)
class PaperImport:
    """The prompts that were found in a copy of a paper.

    Parameters
    ----------
    paper : str
        The paper's name, as :func:`import_prompts` takes it.
    prompts : tuple of ImportedPrompt
        Those whose passages were all found, in the order of papers.toml.
    missing : mapping of str to tuple of str
        The ids of the files that could not be made, with the headings of the passages that were not found.
    """

    paper: str
    prompts: tuple[ImportedPrompt, ...]
    missing: Mapping[str, tuple[str, ...]]

    @property
    def verified(self) -> bool:
        """Whether every prompt of the paper was found as it was printed."""
        return not self.missing and all(prompt.verified for prompt in self.prompts)


def import_prompts(paper: str, path: str | Path) -> PaperImport:
    """Cut the prompts that a paper prints out of a copy of its text.

    A passage is found by hashes of its letters and digits, whatever lines, hyphens, page numbers and columns the
    extraction made of the PDF, and by its heading where they do not fit.

    Parameters
    ----------
    paper : {'cognibench', 'deep', 'fect', 'probe'}
        The paper whose prompts are cut out; `deep` is the one that this package follows.
    path : str or Path
        The text of the PDF, as ``pdftotext`` and its like write it.

    Raises
    ------
    InputError
        The file is not readable text, or holds none of the paper's prompts.
    """
    about = read_asset(__package__, "papers.toml")[check_choice(paper, PAPERS, "paper")]
    result = _passages(paper, about, _read(path))
    by_id = {of["id"]: _make(of, about, result) for of in about["files"]}
    prompts = tuple(prompt for prompt in by_id.values() if isinstance(prompt, ImportedPrompt))
    if not prompts:
        raise InputError(
            f"`text` must hold {about['part']} of {about['source']}, where its prompts are printed. "
            f"Got none of the {len(by_id)} in {str(path)!r}. Give the text of the whole PDF."
        )
    return PaperImport(paper, prompts, {name: of for name, of in by_id.items() if not isinstance(of, ImportedPrompt)})


def write_prompts(paper: PaperImport, folder: str | Path) -> list[Path]:
    """Write each prompt as a TOML file of its name into a folder, which is made where there is none."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"`out` must be a folder. Got the file {str(folder)!r}.")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{prompt.id}.toml" for prompt in paper.prompts]
    for path, prompt in zip(paths, paper.prompts, strict=True):
        with atomic_file(path) as scratch:
            scratch.write_text(prompt.toml, encoding="utf-8", newline="\n")
    return paths


def _read(path: str | Path) -> str:
    try:
        return read_bytes(path, "text").decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"`text` must be a readable file. Got {str(path)!r}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"`text` must be the plain text of the PDF, in UTF-8. Got byte {error.start} of {str(path)!r}. "
            "Extract it first, as by pdftotext."
        ) from None


def _passages(paper: str, about: JsonObject, text: str) -> dict[str, CutPassage]:
    """Return each passage as the reading of the text has it in which most of it fits."""
    best: dict[str, CutPassage] = {}
    for reading in readings(text):
        folded = FoldedText(clean(reading))
        for name, fingerprint in prints_of(paper).items():
            if name in best and best[name].verified:
                continue
            following = [heading for other, heading in about["headings"].items() if other != name]
            result = cut_passage(folded, fingerprint, about["headings"][name], [*following, *about["after"]])
            if result is not None and (name not in best or result.n_verified > best[name].n_verified):
                best[name] = result
    return best


def _make(of: JsonObject, about: JsonObject, paper: Mapping[str, CutPassage]) -> ImportedPrompt | tuple[str, ...]:
    """Return a prompt file, or the names of its passages that are missing; `of` is a table `files` of papers.toml."""
    # A file of steps has messages in each of them; any other is one step.
    names = [one[role] for one in of.get("steps", {"": of}).values() for role in _ROLES if role in one]
    missing = tuple(name for name in names if name not in paper)
    if missing:
        return missing
    texts = {name: _filled(name, of, about, paper[name]) for name in names}
    differs = tuple((name, paper[name].differs) for name in names if not paper[name].verified)
    write = steps_toml if "steps" in of else prompt_toml
    return ImportedPrompt(of["id"], not differs, differs, write(of, about["source"], texts, differs))


def _filled(name: str, of: JsonObject, about: JsonObject, passage: CutPassage) -> str:
    """Return a passage with deep's placeholders in place of the printed ones."""
    # A passage is found by letters and digits, so that signs before the first and behind the last are put there.
    tail = about.get("tails", {}).get(name, "")
    text: str = about.get("heads", {}).get(name, "") + passage.text.removesuffix(tail.strip()).rstrip() + tail
    # Of `names`: a placeholder that the paper names, and deep's name of it.
    for theirs, ours in of.get("names", {}).items():
        text = text.replace(f"{{{theirs}}}", f"{{{{{ours}}}}}")
    # Of `blanks`: what the gaps that the paper leaves without a name stand for, in the order of the text.
    for name in of.get("blanks", ()):
        text = text.replace("{...}", f"{{{{{name}}}}}", 1)
    return text


def import_values(paper: PaperImport, paths: Sequence[Path]) -> dict[str, object]:
    """Return an import as JSON holds it: each prompt with its file and the words that differ, and what is missing."""
    prompts = [
        {"id": prompt.id, "file": str(path), "verified": prompt.verified, "differs": dict(prompt.differs)}
        for prompt, path in zip(paper.prompts, paths, strict=True)
    ]
    return {"paper": paper.paper, "verified": paper.verified, "prompts": prompts, "missing": dict(paper.missing)}


def import_lines(paper: PaperImport, folder: Path) -> Iterator[str]:
    """Yield a table of the prompts, and a line for each that is missing."""
    yield format_table([("PROMPT", "PRINT"), *((prompt.id, _differences_text(prompt)) for prompt in paper.prompts)])
    for name, passages in paper.missing.items():
        yield f"{name}: not made, since the text does not hold {', '.join(passages)}"
    yield f"written to {folder}"


def _differences_text(prompt: ImportedPrompt) -> str:
    if prompt.verified:
        return "verified"
    return "; ".join(f"not verified: {name} first differs within {words!r}" for name, words in prompt.differs)


@dataclass(frozen=True)
class _Import:
    """Options of the command.

    Parameters
    ----------
    paper : str
        Whose prompts.
    text : str
        Plain text of its PDF, as pdftotext writes it.
    out : Path, optional
        A folder for TOML prompts; default: printed-PAPER.
    """

    paper: str = option(MISSING, choices=PAPERS)
    text: str = option(MISSING, "FILE")
    out: Path | None = option(None, "DIR")


add_arguments = console.adder(_Import)


def run(args: argparse.Namespace) -> int:
    """Cut, write and report."""
    folder = args.out or Path(f"printed-{args.paper}")
    result = import_prompts(args.paper, args.text)
    paths = write_prompts(result, folder)
    console.print_result(import_values(result, paths), import_lines(result, folder), as_json=args.json)
    return ExitStatus.DONE if result.verified else ExitStatus.FOUND

"""Collect every sentence that deep can print, with its place, and flag the ones that are hard to read.

    python benchmarks/sentences.py [--worst N] [--room NAME] [--draw N] [--docs] [--json]

Sentences come from the strings of `deep/` (errors, output, help), the docstrings that become help, and the templates
and scripts of pages. Prompts for LLMs, SQL and patterns are left out. A sentence is flagged when it has more than 22
words or a phrase of `CHAINS`. `--docs` collects the pages for users instead. `--draw` draws sentences at random for a
reader who has not seen them.
"""

import argparse
import ast
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from html import unescape
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_WORDS = 22
MIN_WORDS = 4  # shorter ones are labels, names and table heads

CHAINS = re.compile(
    r"\b(so that|(?:of|to|by|for|from|with|in|on) (?:which|whom|whose)|that of|those of|but for|likewise|as wanted|"
    r"in (?:its|their) place|(?:is|are|was|were|be) (?:said|told)|of (?:theirs|yours|its own)|"
    r"as (?:it|they) (?:is|are|stands?)|"
    r"what (?:is|was|it|they) \w+|none (?:is|are)|(?:is|are|was|were) no (?!longer|more|such|evidence|need|other)\w+|"
    r"(?:an?|one) \w+ (?:an?|one) (?:item|call|judge|claim|row|voter|run|line))\b",
    re.IGNORECASE,
)
"""Phrases that mark an inverted or nested sentence; each has a plainer form."""

NOT_FOR_PEOPLE = re.compile(
    r"^\s*(SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|ALTER|WITH|DROP|BEGIN|ON CONFLICT)\b|\(\?[:P<=!i]|\\[bwsd]|"
    r"^[\w.]+\.[\w.]+$|FROM \w+ WHERE|^--"
)
NOT_HERE = [
    "prompt_pool/_locate",
    "prompt_pool/_reader",
    "prompt_pool/_sayings",
    "features/lexical",
    "experiments/printed",
]


@dataclass(frozen=True)
class Sentence:
    """A sentence, the file and line that hold it, and the reasons why it is hard to read."""

    text: str
    place: str
    kind: str  # error, output, help, page or docs

    @property
    def n_words(self) -> int:
        """The number of words; a placeholder counts as one."""
        return len(re.findall(r"[\w…'%$`-]*[A-Za-z0-9…][\w…'%`.,=-]*", self.text))

    @property
    def chains(self) -> list[str]:
        """The phrases of `CHAINS` in it."""
        return [result.lower() for result in CHAINS.findall(self.text)]

    @property
    def badness(self) -> int:
        """Words above the limit, and five a chain."""
        return max(0, self.n_words - MAX_WORDS) + 5 * len(self.chains)


def split(text: str) -> Iterator[str]:
    """Yield the sentences of a text: they end with a mark before a capital, or with a blank line or list sign."""
    for part in re.split(r"\n\s*\n|\n\s*[-*] |\n {4,}|(?:^|\n) {2}deep [^\n]*", text):
        for sentence in re.split(r"(?<=[.!?])[\"'”)*]*\s+(?=[A-Z`…(\"“*\d]|deep )", " ".join(part.split())):
            n_letters = len(re.findall(r"[A-Za-z]", sentence))
            if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= MIN_WORDS and n_letters > len(sentence) / 2:
                yield sentence.strip()


def _literal(node: ast.Constant | ast.JoinedStr) -> str:
    """Return a string with a placeholder for each value."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)


def _apart(tree: ast.Module) -> tuple[set[int], set[int]]:
    """Return the ids of strings to skip (docstrings, parts and formats of f-strings), and of strings in errors."""
    skipped, errors = set[int](), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            errors |= {id(child) for child in ast.walk(node)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
        elif isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            skipped |= {id(child) for child in ast.walk(node.format_spec)}
    return skipped, errors


def _help_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring that becomes help: of a command, and of the fields of its options."""
    if any(isinstance(node, ast.FunctionDef) and node.name == "add_arguments" for node in tree.body):
        yield 1, ast.get_docstring(tree) or ""
    for node in tree.body:
        # A sub-command that is a function shows its docstring.
        if isinstance(node, ast.FunctionDef) and "For instance:" in (ast.get_docstring(node) or ""):
            yield node.lineno, ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef) and "option(" in ast.unparse(node):
            _, _, parameters = (ast.get_docstring(node) or "").partition("----------\n")
            for block in re.split(r"^\w[^\n]*\n", parameters, flags=re.MULTILINE):
                yield node.lineno, block.strip()


def python_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a module's strings, and of the docstrings that become help."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = path.relative_to(ROOT).as_posix()
    for line, text in _help_texts(tree):
        yield from (Sentence(one, f"{name}:{line}", "help") for one in split(text))
    skipped, errors = _apart(tree)
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if not is_text or id(node) in skipped or NOT_FOR_PEOPLE.search(text := _literal(node)):
            continue
        kind = "error" if id(node) in errors else "page" if "/report/" in name or "<" in text else "output"
        for one in split(unescape(re.sub(r"<[^>]*>", " ", text))):
            yield Sentence(one, f"{name}:{node.lineno}", kind)


def page_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a template or script of pages."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".js":
        code = re.sub(r"^\s*(//.*|/?\*.*)$", "", text, flags=re.MULTILINE)
        for result in re.finditer(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\\n]|\\.)*)`", code):
            literal = re.sub(r"\$\{[^}]*\}", "…", next(group for group in result.groups() if group is not None))
            line = code.count("\n", 0, result.start()) + 1
            yield from (Sentence(one, f"{name}:{line}", "page") for one in split(re.sub(r"<[^>]*>", " ", literal)))
        return
    text = re.sub(r"<(script|style)\b.*?</\1>|\{[%#].*?[%#]\}", " ", text, flags=re.DOTALL)
    text = re.sub(r"</?(?:p|li|h\d|td|th|dt|dd|div|button|label|summary)\b[^>]*>", "\n\n", text)
    for one in split(unescape(re.sub(r"<[^>]*>|\{\{.*?\}\}", " ", text))):
        yield Sentence(one, name, "page")


def user_pages() -> list[Path]:
    """Return the pages that are written by hand for users, the README first."""
    docs = ROOT / "docs"
    apart = {"benchmarks", "papers", "papers-real", "results-tables"}  # made by a command, or evidence
    apart |= {"testing", "mutation", "netcal", "walks"}  # for contributors
    pages = [path for path in sorted(docs.glob("*.md")) if path.stem not in apart]
    return [ROOT / "README.md", *pages, *sorted((docs / "integrations").glob("*.md"))]


def prose(path: Path) -> str:
    """Return a page without what a command writes into it, between marks of a comment."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"<!-- (\w+)[:\w-]* -->.*?<!-- /\1 -->", "", text, flags=re.DOTALL)


def doc_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a page of the documentation: paragraphs, lists and cells of tables."""
    text = re.sub(r"^```.*?^```", "", prose(path), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^#.*$|^\|[-: |]+\|$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)|[*\[]|`(?=`)", "", re.sub(r"(?m)^\||\||(?m:^\d\. )", "\n\n", text))
    for one in split(text):
        yield Sentence(one, path.relative_to(ROOT).as_posix(), "docs")


@cache
def collect() -> list[Sentence]:
    """Return every sentence that a command, page, report or error can print."""
    sentences = dict[tuple[str, str], Sentence]()
    for path in sorted((ROOT / "deep").rglob("*")):
        if any(part in path.as_posix() for part in NOT_HERE):
            continue
        if path.suffix in (".html", ".js"):
            result = page_sentences(path)
        elif path.suffix == ".py":
            result = python_sentences(path)
        else:
            continue
        for sentence in result:
            sentences.setdefault((sentence.text, sentence.place.partition(":")[0]), sentence)
    return list(sentences.values())


def main() -> None:
    """Print the list."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--worst", type=int, metavar="N", help="the N that are hardest to read")
    p.add_argument("--draw", type=int, metavar="N", help="N at random")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--room", default="", help="only places that hold this text")
    p.add_argument("--docs", action="store_true", help="the pages for users, and their words")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    sentences = [one for path in user_pages() for one in doc_sentences(path)] if args.docs else collect()
    sentences = [one for one in sentences if args.room in one.place]
    shown = sentences
    if args.worst is not None:
        shown = sorted((one for one in sentences if one.badness), key=lambda one: -one.badness)[: args.worst]
    elif args.draw is not None:
        shown = random.Random(args.seed).sample(sentences, min(args.draw, len(sentences)))
    if args.json:
        sys.stdout.write(json.dumps([asdict(one) for one in shown], indent=1, ensure_ascii=False) + "\n")
        return
    for one in shown:
        sys.stdout.write(f"{one.place} [{one.kind}, {one.n_words}{''.join(f', {c}' for c in one.chains)}] {one.text}\n")
    flagged = [one for one in sentences if one.badness]
    long = sum(one.n_words > MAX_WORDS for one in flagged)
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(one.kind for one in sentences).most_common())
    sys.stdout.write(f"{len(sentences)} sentences ({kinds}); {len(flagged)} flagged, {long} of more than 22 words\n")
    if args.docs:
        words = {path: len(prose(path).split()) for path in user_pages()}
        for path, n in sorted(words.items(), key=lambda item: -item[1]):
            sys.stdout.write(f"{n:6,} {path.relative_to(ROOT).as_posix()}\n")
        sys.stdout.write(f"{sum(words.values()):6,} words on {len(words)} pages for users\n")


if __name__ == "__main__":
    main()

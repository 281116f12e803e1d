"""An option, declared once: a field of a dataclass.

The parser of a command, the file of a run, the values that Python users give and the page of options are made from it.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin


@dataclass(frozen=True)
class Option:
    """An option of commands.

    Parameters
    ----------
    help : str or callable
        What it is for; a callable where the answer takes a look at what is installed.
    rare : bool, default=False
        Whether ``--help-all`` alone shows it.
    parser : mapping
        Settings of `argparse.ArgumentParser.add_argument` that do not follow from type and default. ``flags`` are all
        the names of the option, where they are not its own; a name without -- makes an argument by place of it.
    name : str
        As Python has it.
    type : type
        `bool`, `list` of several words, or what one word is turned into.
    default : object
        Of the parser: None where the field has an empty text or no default, an empty list for no words.
    group : str, optional
        Its heading in the help.
    """

    help: str | Callable[[], str]
    rare: bool = False
    parser: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    type: Any = str
    default: object = ...  # that of the field, which is not known yet
    group: str | None = None

    def changed(self, **settings: Any) -> "Option":
        """Return it as one command has it: rare or not there, with another help, default or settings of the parser."""
        own = {name: settings.pop(name) for name in ("default", "group", "help", "rare") if name in settings}
        return replace(self, **own, parser={**self.parser, **settings})

    @property
    def flags(self) -> list[str]:
        """How it is written on a command line; an argument by place has its name alone."""
        return list(self.parser.get("flags", [f"--{self.name.replace('_', '-')}"]))

    @property
    def dest(self) -> str:
        """Its name among the parsed options, and in the file of a run: that of its first flag."""
        return self.flags[0].removeprefix("--").replace("-", "_")

    @property
    def purpose(self) -> str:
        """The help of it, as it is printed."""
        return self.help if isinstance(self.help, str) else self.help()


def option(value: object, metavar: str | None = None, *, rare: bool = False, **parser: Any) -> Any:
    """Declare a field of a dataclass that is an option; what it is for says the docstring of its class.

    Parameters
    ----------
    value : object
        The default of the field; `dataclasses.MISSING` where it has none. Commands then demand the option, but for
        ``required=False``.
    metavar : str, optional
        What stands for its value in the help.
    rare : bool, default=False
        Whether ``--help-all`` alone shows it.
    **parser
        Settings of the parser, see :class:`Option`; `help` where the docstring cannot say it, `default` where the
        parser's is not the field's.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from deep._util.options import option, options_of
    >>> @dataclass
    ... class Limits:
    ...     '''How fast.
    ...
    ...     Parameters
    ...     ----------
    ...     rpm : float, optional
    ...         Requests a minute.
    ...     '''
    ...     rpm: float | None = option(None, "N")
    >>> [(one.flags, one.type, one.purpose) for one in options_of(Limits)]
    [(['--rpm'], <class 'float'>, 'requests a minute')]
    """
    settings = parser if metavar is None else {"metavar": metavar, **parser}
    spec = Option("", rare).changed(**settings)
    # One without a default may then stand behind others that have one.
    return field(default=value, metadata={"option": spec}, kw_only=True if value is MISSING else MISSING)


def argument(name: str, metavar: str | None, purpose: str, **parser: Any) -> Option:
    """Return an option of one command, which stands alone: by place, or with `flags`.

    Examples
    --------
    >>> argument("names", "NAME", "a benchmark", nargs="+").dest
    'names'
    """
    settings = {"flags": [name], **parser} if metavar is None else {"flags": [name], "metavar": metavar, **parser}
    return Option(purpose, name=name, default=None, parser=settings)


# The types of a field of several words.
SEQUENCES = (tuple, Sequence)


def options_of(topic: type) -> Iterator[Option]:
    """Yield the options that a dataclass declares, in its order; fields that no command line can give are none.

    Their heading is that of the dataclass, its `heading`, if it has one.
    """
    purposes = {name: text for cls in reversed(topic.__mro__) for name, text in _parameter_texts(cls.__doc__ or "")}
    for each in fields(topic):
        if declared := each.metadata.get("option"):
            one = replace(declared, help=declared.help or purposes[each.name], name=each.name)
            parts = [each.type] if get_origin(each.type) in (*SEQUENCES, Literal) else [*get_args(each.type), each.type]
            kind = next(part for part in parts if part is not NoneType)
            standard: object = None if each.default in (MISSING, "") else each.default
            if get_origin(kind) in SEQUENCES:
                kind, standard = list, []
            if get_origin(kind) is Literal:
                one = one.changed(choices=get_args(kind))
            if each.default is MISSING and one.flags[0].startswith("--"):
                one = replace(one, parser={"required": True, **one.parser})
            # Of a class that is not loaded yet, and of a choice, the word that it is made of.
            kind = kind if isinstance(kind, type) else str
            default = standard if one.default is ... else one.default
            yield replace(one, type=kind, default=default, group=getattr(topic, "heading", None))


def _parameter_texts(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each parameter of a docstring, as the help of a command writes it."""
    for name, text in re.findall(r"(?m)^(\w+)(?: : .*)?\n((?:    .*\n?)+)", f"{inspect.cleandoc(docstring)}\n"):
        # Help is a lower-case phrase, but "P", "LLM" and other capitals stay.
        words = " ".join(text.split()).removesuffix(".")
        first = words.partition(" ")[0]
        yield name, words[:1].lower() + words[1:] if first[1:].islower() or len(first) == 1 else words


def topic_values(topic: type, source: object) -> dict[str, Any]:
    """Return by name what was given for the options of a topic; what was not is left to the topic's own defaults."""
    values = {one.name: getattr(source, one.dest, None) for one in options_of(topic)}
    return {name: value for name, value in values.items() if value is not None and value != []}

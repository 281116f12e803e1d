"""Completion of commands, their parts and options for bash, zsh and fish, made from the parsers."""

from collections.abc import Mapping

from deep.console._parser import CommandParser
from deep.exceptions import InputError

BASH = r"""
_deep() {{
    local these cur=${{COMP_WORDS[COMP_CWORD]}}
    case "$COMP_CWORD ${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
        1\ *) these="{commands}" ;;
{cases}
    esac
    COMPREPLY=($(compgen -W "$these" -- "$cur"))
}}
complete -o default -F _deep deep
"""

SHELLS = {"bash": BASH, "fish": "", "zsh": f"autoload -U +X compinit bashcompinit && compinit -u && bashcompinit{BASH}"}


def completion(shell: str, parsers: Mapping[str, CommandParser]) -> str:
    """Return a script that completes `deep` in a shell.

    Parameters
    ----------
    shell : {'bash', 'fish', 'zsh'}
    parsers : mapping of str to CommandParser
        By command.

    Raises
    ------
    InputError
        The shell is another one.
    """
    if shell not in SHELLS:
        raise InputError(f"`completion` must be one of {', '.join(SHELLS)}. Got {shell!r}.")
    words = {"": [*parsers, "--help", "--version"]}
    for name, parser in parsers.items():
        usual = parser._rooms.get(parser._standard or "", parser)
        words |= {f"{name} {part}": flags_of(room) for part, room in parser._rooms.items()}
        words[name] = [*parser._rooms, *flags_of(usual)]
    if shell == "fish":
        return "".join(
            f"complete -c deep -n '{_typed(path)}' -a '{' '.join(these)}'\n" for path, these in words.items()
        )
    # `data check` stands before `data`; its second word is being typed where the count is 2.
    cases = [
        rf'        {"[!2]*" if part else "*"}\ {name}\ {part or "*"}) these="{" ".join(these)}" ;;'
        for (name, _, part), these in ((path.partition(" "), these) for path, these in words.items() if path)
    ]
    return SHELLS[shell].format(commands=" ".join(words[""]), cases="\n".join(cases))


def flags_of(parser: CommandParser) -> list[str]:
    """Return the long options of a command."""
    return [flag for flag in parser._option_string_actions if flag.startswith("--")]


def _typed(path: str) -> str:
    """Return fish's condition that these words have been typed."""
    return "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split()) or "__fish_use_subcommand"

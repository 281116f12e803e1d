"""Every command of deep as a function of its words."""

from functools import partial

from deep._util.entry_points import COMMAND_GROUP, find_entry_points
from deep.cli import COMMANDS, main

COMMAND_NAMES = sorted({*COMMANDS, *find_entry_points(COMMAND_GROUP).usable})
"""Those of the core and those of guests."""


def _subcommand(command, name):
    """Return a function of the words behind `deep COMMAND NAME`."""
    return lambda words: main([name, *words], command=command)


adapt = partial(main, command="adapt")
check = partial(main, command="check")
cognibench = partial(main, command="cognibench")
data = partial(main, command="data")
estimate = partial(main, command="estimate")
export = partial(main, command="export")
fect = partial(main, command="fect")
fit = partial(main, command="fit")
label = partial(main, command="label")
loo = partial(main, command="loo")
panel = partial(main, command="panel")
paper = partial(main, command="paper")
probe = partial(main, command="probe")
prompts = partial(main, command="prompts")
report = partial(main, command="report")
score = partial(main, command="score")
select = partial(main, command="select")
serve = partial(main, command="serve")
votes = partial(main, command="ask")

label_list = _subcommand("label", "list")
explain = _subcommand("score", "explain")
moments = _subcommand("data", "moments")

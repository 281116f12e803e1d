"""Every command of deep as a function of its words."""

from functools import partial

from deep.cli import main

adapt = partial(main, command="adapt")
annotate = partial(main, command="annotate")
check = partial(main, command="check")
cognibench = partial(main, command="cognibench")
compare = partial(main, command="compare")
data = partial(main, command="data")
estimate = partial(main, command="estimate")
explain = partial(main, command="explain")
export = partial(main, command="export")
fect = partial(main, command="fect")
finetune = partial(main, command="finetune")
fit = partial(main, command="fit")
label_next = partial(main, command="label-next")
loo = partial(main, command="loo")
panel = partial(main, command="panel")
paper = partial(main, command="paper")
probe = partial(main, command="probe")
prompts = partial(main, command="prompts")
score = partial(main, command="score")
select = partial(main, command="select")
sequential = partial(main, command="sequential")
transfer = partial(main, command="transfer")
votes = partial(main, command="votes")

from ._command import add_arguments as add_arguments
from ._command import run as run
from ._run import leave_one_dataset_out as leave_one_dataset_out
from ._runs import PublishedBaseline as PublishedBaseline
from ._runs import published_baselines as published_baselines
from ._runs import run_all as run_all
from ._runs import write_held_out as write_held_out
from ._tasks import LooOptions as LooOptions

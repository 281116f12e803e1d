from ._command import add_arguments as add_arguments
from ._command import run as run
from ._run import leave_one_dataset_out as leave_one_dataset_out
from ._run import run_all as run_all
from ._run import write_held_out as write_held_out
from ._show import aligned as aligned
from ._show import part_lines as part_lines
from ._tasks import LooOptions as LooOptions

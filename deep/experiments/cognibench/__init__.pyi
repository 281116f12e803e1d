from ._command import add_arguments as add_arguments
from ._command import run as run
from ._turns import verdicts_by_item as verdicts_by_item

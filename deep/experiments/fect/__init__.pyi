from ._command import add_arguments as add_arguments
from ._command import run as run

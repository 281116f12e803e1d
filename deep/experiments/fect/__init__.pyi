from ._command import add_arguments as add_arguments
from ._command import run as run
from ._report import PublishedScore as PublishedScore
from ._report import published_fect as published_fect

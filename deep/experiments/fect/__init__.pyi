from ._command import add_arguments as add_arguments
from ._command import run as run
from ._published import PublishedScore as PublishedScore
from ._published import published_fect as published_fect

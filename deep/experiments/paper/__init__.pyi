from ._command import add_arguments as add_arguments
from ._command import run as run
from ._published import PublishedFigure as PublishedFigure
from ._published import published_table as published_table

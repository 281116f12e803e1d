from ._command import add_arguments as add_arguments
from ._command import run as run
from ._paper_tables import PublishedFigure as PublishedFigure
from ._paper_tables import kept_out as kept_out
from ._paper_tables import published_table as published_table

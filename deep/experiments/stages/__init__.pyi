from ._stage_table import StageTable as StageTable
from ._stage_table import stage_table as stage_table

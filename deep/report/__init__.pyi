from ._items import said_by_judges as said_by_judges
from ._page import page_asset as page_asset
from ._sources import LabelFiles as LabelFiles
from ._write import REPORT as REPORT
from ._write import report_line as report_line
from ._write import reported_folder as reported_folder
from ._write import standard_place as standard_place
from ._write import write_report as write_report

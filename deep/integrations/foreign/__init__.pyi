from ._read import Foreign as Foreign
from ._read import read_foreign as read_foreign
from ._tools import ForeignOptions as ForeignOptions
from ._tools import recognise as recognise
from ._tools import tools as tools

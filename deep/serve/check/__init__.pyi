from ._app import create_app as create_app
from ._checker import Checker as Checker
from ._options import CheckOptions as CheckOptions

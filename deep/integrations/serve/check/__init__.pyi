from ._answers import CheckOptions as CheckOptions
from ._app import create_app as create_app
from ._checker import Checker as Checker

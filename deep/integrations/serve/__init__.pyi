from .check import CheckOptions as CheckOptions
from .check import create_app as create_app
from .web import GuardOptions as GuardOptions
from .web import ServerOptions as ServerOptions
from .web import find_token as find_token
from .web import run_server as run_server
from .web import serving as serving

"""Servers for people and programs: a guard and a server, the check of pairs, its page.

All of it needs ``pip install 'deep-judges[serve]'``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

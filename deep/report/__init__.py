"""The report: one HTML file of what a run, a model or votes show, with an item browser.

The package is also the function `deep.report(model, votes)`: both have the same name.

Examples
--------
    >>> import deep
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(0)
    >>> mine = votes.rows(votes.datasets == "aggrefact-xsum")
    >>> page = deep.report(deep.fit(votes.rows(votes.datasets != "aggrefact-xsum")), mine)
    >>> "<h1>Report</h1>" in page.html
    True
"""

import sys
from types import ModuleType
from typing import Any

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _report(_: ModuleType, *args: Any, **options: Any) -> object:
    """Return a report for a notebook."""
    from deep.report._write import report

    return report(*args, **options)


# Python looks for `__call__` in the class of what is called, so the module gets a class of its own.
report = sys.modules[__name__]
report.__class__ = type("CallableModule", (ModuleType,), {"__call__": _report})

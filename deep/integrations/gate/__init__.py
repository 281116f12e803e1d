"""A gate for continuous integration: `deep check --gate` with JUnit, a summary, and a history with its chart."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

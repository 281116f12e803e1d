"""Staged judges after CogniBench: a label of each sentence, task by task (`tiered`), in two prompts or as a list."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Prompts as data: what they say, which pools they make up, and how a reply becomes a vote or a reason for none."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Dialogues about texts, between personas and LLMs: a part of ``deep cognibench``."""

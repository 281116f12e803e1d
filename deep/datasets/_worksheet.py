"""FECT's steps for people: decompose, decouple, detach (arXiv:2508.00889, section 2.2), in our own words."""

from importlib.resources import files

WORKSHEET = files("deep.datasets").joinpath("worksheet.md").read_text(encoding="utf-8")
"""The worksheet, in Markdown."""

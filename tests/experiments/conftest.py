"""The main job draws only where a test looks at what is drawn."""

from tests.blank_figures import _blank_figures, blank

__all__ = ["_blank_figures", "blank"]

"""The commands of deep, and what they compute as functions."""

from deep.experiments._run import LooResult, leave_one_dataset_out
from deep.experiments._settings import Settings

__all__ = ["LooResult", "Settings", "leave_one_dataset_out"]

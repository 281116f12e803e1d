"""Prompts as data: what they say, which pools they make up, and how a reply becomes a vote or a reason for none."""

from deep.prompt_pool._labeling import PromptLabelingFunction, Reply, SampledLabelingFunction, pool_judgments
from deep.prompt_pool._pool import POOLS, check_folder, list_prompts, load_pool, load_prompt
from deep.prompt_pool._program import Program, Question, run_program
from deep.prompt_pool._prompt import Prompt

__all__ = [
    "POOLS",
    "Program",
    "Prompt",
    "PromptLabelingFunction",
    "Question",
    "Reply",
    "SampledLabelingFunction",
    "check_folder",
    "list_prompts",
    "load_pool",
    "load_prompt",
    "pool_judgments",
    "run_program",
]

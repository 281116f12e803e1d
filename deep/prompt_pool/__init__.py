"""Prompts as data: what they say, which pools they make up, and how a reply becomes a vote or a reason for none."""

from deep.prompt_pool._judges import JUDGES, StagedJudge, load_judge
from deep.prompt_pool._labeling import PromptLabelingFunction, Reply, SampledLabelingFunction, pool_judgments
from deep.prompt_pool._pool import POOLS, check_folder, list_prompts, load_pool, load_prompt
from deep.prompt_pool._program import Program, Question, run_program, why_unusable
from deep.prompt_pool._prompt import Prompt
from deep.prompt_pool._tiered import TieredJudge
from deep.prompt_pool._tiered_list import ListJudge, list_text
from deep.prompt_pool._tiered_reading import CRITERIA, TIERS, SentenceVerdict, TurnReading
from deep.prompt_pool._tiered_wording import Contrast, load_contrasts

__all__ = [
    "CRITERIA",
    "JUDGES",
    "POOLS",
    "TIERS",
    "Contrast",
    "ListJudge",
    "Program",
    "Prompt",
    "PromptLabelingFunction",
    "Question",
    "Reply",
    "SampledLabelingFunction",
    "SentenceVerdict",
    "StagedJudge",
    "TieredJudge",
    "TurnReading",
    "check_folder",
    "list_prompts",
    "list_text",
    "load_contrasts",
    "load_judge",
    "load_pool",
    "load_prompt",
    "pool_judgments",
    "run_program",
    "why_unusable",
]

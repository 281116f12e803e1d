"""Fine-tuning of a small model that judges, full or LoRA."""

from deep.experiments.finetune._command import main

__all__ = ["main"]

"""Teach a small model to judge: supervised fine-tuning on chat JSONL, full or LoRA, with the papers' settings.

Every line of the data is {"messages": [{"role": ..., "content": ...}, ...]}, as `export-sft` of the companion systems
writes it; the model learns the assistant's replies and nothing else. The tuned model is a folder that any
OpenAI-compatible server loads, and so a judge like any other: deep votes --base-url ... --llm ...
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

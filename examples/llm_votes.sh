#!/usr/bin/env bash
# LLM prompts and a judge of several steps, asked through an OpenAI-compatible endpoint: here a stand-in on this machine
# that looks for the claim's words in the source. With a real endpoint leave out the first three lines.
set -euo pipefail
python -m tests.fault_server --port "${PORT:-8766}" --fault rate_limited=0.05 & server=$!
trap 'kill $server' EXIT
export OPENAI_API_KEY=unused OPENAI_BASE_URL="http://127.0.0.1:${PORT:-8766}/v1"
OUT=${OUT:-runs/example-llm-votes}
mkdir -p "$OUT"

deep ask examples/claims.csv --pool deep-3 --llm stand-in --out "$OUT/votes.parquet" --dry-run
deep ask examples/claims.csv --pool deep-3 --llm stand-in --out "$OUT/votes.parquet"
deep ask report "$OUT/votes.ledger.sqlite"
deep fit "$OUT/votes.parquet" --exclude weather --jobs 1 --sizes 3 --ensembler LogisticRegression --calibrator platt \
    --out "$OUT/model.json"
deep score "$OUT/model.json" --source-text "It rained in Arlow all day. The bridge was closed." \
    --claim-text "The bridge in Arlow was closed." --ledger "$OUT/score.ledger.sqlite"

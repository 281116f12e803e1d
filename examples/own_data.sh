#!/usr/bin/env bash
# Your own examples, without a key: check the file, judge it by lexical checks, see what the checks are worth, and get
# P(consistent) for a dataset whose labels are not used. The examples are invented.
set -euo pipefail
OUT=${OUT:-runs/example-own-data}
mkdir -p "$OUT"

deep data check examples/claims.csv
deep ask examples/claims.csv --lexical all --out "$OUT/votes.parquet"
deep panel --votes "$OUT/votes.parquet"
deep loo --test weather --votes "$OUT/votes.parquet" --jobs 1 --sizes 3 --ensembler LabelModel,LogisticRegression \
    --calibrator platt --out "$OUT/loo"

#!/usr/bin/env bash
# Every kind of fit that `deep fit` chooses by the labels it gets (docs/which-fit.md): with no label, with labels of your
# own dataset, with one or two labeled datasets, with three or more, and with labels of the target beside them.
set -euo pipefail
OUT=${OUT:-runs}
export OUT
mkdir -p "$OUT"
deep ask examples/claims.csv --lexical all --out "$OUT/votes.parquet"
python - <<'PY'
import os

import pandas as pd

out = os.environ["OUT"]
votes = pd.read_parquet(f"{out}/votes.parquet")
unlabeled, mine = votes.assign(label=pd.NA), votes.dataset == "weather"
unlabeled.to_parquet(f"{out}/unlabeled.parquet")
unlabeled[mine].to_parquet(f"{out}/mine.parquet")
votes[mine].sample(12, random_state=0).to_parquet(f"{out}/my-labels.parquet")
PY

# No label anywhere.
deep fit "$OUT/unlabeled.parquet" --out "$OUT/votes-alone.json"
deep estimate "$OUT/votes-alone.json" --votes "$OUT/unlabeled.parquet"

# Labels of your own dataset alone.
deep fit "$OUT/mine.parquet" --labels "$OUT/my-labels.parquet" --out "$OUT/own.json"

# One or two labeled datasets.
deep fit "$OUT/votes.parquet" --only sport,museum --out "$OUT/few.json"
deep score "$OUT/few.json" --votes "$OUT/mine.parquet" --out "$OUT/few.csv"

# Three or more.
deep fit "$OUT/votes.parquet" --exclude weather --out "$OUT/stack.json"
deep score "$OUT/stack.json" --votes "$OUT/mine.parquet" --out "$OUT/stack.csv"

# And labels of the target.
deep label list "$OUT/stack.json" --votes "$OUT/mine.parquet" --n 10 --out "$OUT/to-label.csv"
deep check "$OUT/stack.json" --votes "$OUT/mine.parquet" --labels "$OUT/my-labels.parquet" || test $? -eq 1
deep adapt "$OUT/stack.json" --votes "$OUT/mine.parquet" --labels "$OUT/my-labels.parquet" --out "$OUT/adapted.json"
deep score "$OUT/adapted.json" --votes "$OUT/mine.parquet" --out "$OUT/adapted.csv"
deep estimate "$OUT/stack.json" --votes "$OUT/mine.parquet" --labels "$OUT/my-labels.parquet"

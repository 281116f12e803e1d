"""Ray Data: both passes by `map_batches(batch_format="pyarrow")`, the scorer sent to the workers as it is.

pip install "ray[data]"
python examples/scale/with_ray.py
"""

import json
import os

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import pyarrow as pa
import ray
from rows import prepare

from deep.integrations.engines import adapt_by_moments, moments_from, moments_of_batch, moments_values

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
ray.data.DataContext.get_current().enable_progress_bars = False
for soft in (False, True):
    case = prepare("ray-soft" if soft else "ray", soft=soft)

    def counted(batch: pa.Table, model=case.model) -> pa.Table:
        """Return one row: the moments of a batch, as JSON."""
        return pa.table({"moments": [json.dumps(moments_values(moments_of_batch(model, batch)))]})

    rows = ray.data.read_parquet(case.parts)
    told = rows.map_batches(counted, batch_format="pyarrow").take_all()
    moments = [moments_from(json.loads(row["moments"])) for row in told]
    assert adapt_by_moments(case.model, moments[0].merge(*moments[1:])).prior == case.score.model.prior
    found = rows.map_batches(case.score, batch_format="pyarrow").select_columns(["item_id", "p_consistent"]).take_all()
    case.show(f"Ray Data{', soft scores' * soft}", [r["item_id"] for r in found], [r["p_consistent"] for r in found])
ray.shutdown()

"""Polars: lazy frames from many files, counted and scored batch by batch by `map_batches`.

python examples/scale/with_polars.py
"""

import polars as pl
from rows import prepare

from deep.integrations.engines import adapt_by_moments, moments_of_batch

for soft in (False, True):
    case = prepare("polars-soft" if soft else "polars", soft=soft)
    frames = [pl.scan_parquet(part) for part in case.parts]
    moments = [moments_of_batch(case.model, frame.collect().to_arrow()) for frame in frames]
    assert adapt_by_moments(case.model, moments[0].merge(*moments[1:])).prior == case.score.model.prior

    def scored(frame: pl.DataFrame, score=case.score) -> pl.DataFrame:
        """Return the scores of a batch."""
        return pl.from_arrow(score(frame.to_arrow()))

    schema = pl.from_arrow(case.score(pl.read_parquet(case.parts[0], n_rows=1).to_arrow())).schema
    lazy = pl.concat(frames).map_batches(scored, schema=schema, streamable=True)
    found = lazy.select("item_id", "p_consistent").collect(engine="streaming")
    case.show(f"Polars{', soft scores' * soft}", found["item_id"].to_list(), found["p_consistent"].to_list())

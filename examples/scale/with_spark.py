"""Spark: both passes by `mapInArrow`, the scorer sent to the workers as it is; needs Java.

pip install pyspark
python examples/scale/with_spark.py
"""

import json
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from rows import prepare

from deep.integrations.engines import adapt_by_moments, moments_from, moments_of_batch, moments_values

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
for soft in (False, True):
    case = prepare("spark-soft" if soft else "spark", soft=soft)
    model, score = case.model, case.score
    rows = spark.read.parquet(*case.parts)
    names = rows.columns
    rows = rows.toDF(*(f"c{i}" for i in range(len(names))))  # to Spark, the dot in gpt-3.5 is a field of a struct

    def counted(batches: Iterator[pa.RecordBatch], model=model, names=names) -> Iterator[pa.RecordBatch]:
        """Yield one row: the moments of all batches of a partition, as JSON."""
        parts = [moments_of_batch(model, batch.rename_columns(names)) for batch in batches if batch.num_rows]
        if parts:
            yield pa.record_batch({"moments": [json.dumps(moments_values(parts[0].merge(*parts[1:])))]})

    def scored(batches: Iterator[pa.RecordBatch], score=score, names=names) -> Iterator[pa.RecordBatch]:
        """Yield the scores of each batch."""
        for batch in batches:
            yield score(batch.rename_columns(names)).select(["item_id", "p_consistent"])

    moments = [moments_from(json.loads(row.moments)) for row in rows.mapInArrow(counted, "moments string").collect()]
    assert adapt_by_moments(model, moments[0].merge(*moments[1:])).prior == score.model.prior
    found = rows.mapInArrow(scored, "item_id string, p_consistent double").collect()
    case.show(f"Spark{', soft scores' * soft}", [r.item_id for r in found], [r.p_consistent for r in found])
spark.stop()

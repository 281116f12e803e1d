"""DuckDB: the first pass is SQL, the second a function over Arrow columns, or for votes alone a join.

python examples/scale/with_duckdb.py
"""

import duckdb
import pyarrow as pa
from rows import prepare

from deep.integrations.engines import adapt_by_moments, export_table, moments_of_batch, moments_of_cells, moments_sql

# Votes alone: both passes are SQL, and no row leaves the database.
case = prepare("duckdb", soft=False)
with duckdb.connect() as database:
    database.execute(f"CREATE VIEW votes AS SELECT * FROM '{case.folder / 'part-*.parquet'}'")
    cells = case.folder / "cells.parquet"
    database.execute(f"COPY ({moments_sql(case.model).strip().rstrip(';')}) TO '{cells}'")
    adapted = adapt_by_moments(case.model, moments_of_cells(case.model, [str(cells)]))
    if adapted.has_table:
        export_table(adapted, case.folder / "model.parquet", "parquet")
        same = " AND ".join(f'v."{name}" IS NOT DISTINCT FROM m."{name}"' for name in adapted.voter_names)
        join = f"SELECT item_id, m.p_consistent FROM votes v JOIN '{case.folder / 'model.parquet'}' m ON {same}"
        case.show("DuckDB, a join", *map(list, zip(*database.execute(join).fetchall(), strict=True)))

# Soft scores beside the votes: a function over columns, vectors of rows at a time.
case = prepare("duckdb-soft", soft=True)


def p_consistent(rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return P of rows, each a struct of the columns of the model."""
    return case.score(pa.Table.from_struct_array(rows))["p_consistent"]


with duckdb.connect() as database:
    database.execute(f"CREATE VIEW votes AS SELECT * FROM '{case.folder / 'part-*.parquet'}'")
    found = moments_of_batch(case.model, database.sql("SELECT * FROM votes").to_arrow_table())
    assert adapt_by_moments(case.model, found).prior == case.score.model.prior
    fields = {**dict.fromkeys(case.model.voter_names, "TINYINT"), **dict.fromkeys(case.model.score_names, "DOUBLE")}
    database.create_function("p_consistent", p_consistent, [duckdb.struct_type(fields)], "DOUBLE", type="arrow")
    packed = ", ".join(f"'{name}': \"{name}\"" for name in fields)
    rows = database.execute(f"SELECT item_id, p_consistent({{{packed}}}) FROM votes").fetchall()
    case.show("DuckDB, an Arrow function", *map(list, zip(*rows, strict=True)))

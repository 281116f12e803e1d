"""SQL that counts the cells of a table of votes: the first of two passes, where the rows live."""

from deep._names import check_name
from deep.exceptions import InputError
from deep.model.file._export import quoted
from deep.model.file._model import Model


def moments_sql(model: Model, *, table: str = "votes") -> str:
    """Return one SELECT that counts every pattern of votes by dataset, in words that every SQL database knows.

    Parameters
    ----------
    model : Model
        Of votes alone.
    table : str, default='votes'
        The table with a column `dataset` and one for each voter: 1, 0, or NULL for no vote.

    Raises
    ------
    InputError
        The model has soft scores, or `table` is no name.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit, moments_sql
    >>> model = fit(simulate_votes(0), sizes=[1], ensembler="LogisticRegression", calibrator="platt")
    >>> print(moments_sql(model).splitlines()[-1])
    GROUP BY "dataset", "prompt-1/gpt-4";
    """
    if model.score_names:
        raise InputError(
            f"`model` must be one of votes alone to be counted in SQL. Got one with soft scores, "
            f"{model.score_names[0]!r}. Give `deep data moments` the votes and scores, or call `moments_of_batch`."
        )
    check_name(table, "table")
    for name in model.voter_names:
        check_name(name, "model")
    columns = ", ".join(['"dataset"', *(quoted(name) for name in model.voter_names)])
    return (
        "-- Counts of every pattern of votes, by dataset: what a model needs of a whole dataset before it scores one.\n"
        "-- Save the result as cells.csv or cells.parquet; tables of parts of the rows do as well. In DuckDB:\n"
        "--   COPY (this SELECT without its semicolon) TO 'cells.parquet' (FORMAT parquet);\n"
        "-- Then: deep data moments model.json --cells cells.parquet --out moments.json\n"
        f'SELECT {columns}, COUNT(*) AS "n"\nFROM {quoted(table)}\nGROUP BY {columns};\n'
    )

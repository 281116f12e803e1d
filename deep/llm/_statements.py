"""The statements that write rows, made of the ledger's tables and of the columns that a row has."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Literal, NamedTuple

from sqlalchemy import Connection, Dialect, Table, bindparam, or_, update
from sqlalchemy.dialects import postgresql, sqlite

How = Literal["insert", "insert_or_keep", "insert_or_replace", "update"]

_DIALECTS: dict[str, tuple[Dialect, Callable[[Table], sqlite.Insert | postgresql.Insert]]] = {
    "sqlite": (sqlite.dialect(paramstyle="named"), sqlite.insert),
    "postgresql": (postgresql.dialect(paramstyle="pyformat"), postgresql.insert),  # type: ignore[no-untyped-call]
}


class Write(NamedTuple):
    """A row to write.

    Parameters
    ----------
    table : Table
    how : {'insert', 'insert_or_keep', 'insert_or_replace', 'update'}
        What to do about a row with the same primary key: fail, keep it, or give it all new values; or change those
        of its columns that `row` has.
    row : mapping
        Values by column.
    whole : callable, optional
        Returns all that is known of the row, for a ledger that may lack it.
    """

    table: Table
    how: How
    row: Mapping[str, object]
    whole: Callable[[], Mapping[str, object]] | None = None


def missing_rows(writes: Iterable[Write]) -> Iterator[Write]:
    """Yield the inserts of rows that are to be updated and may not be there."""
    return (Write(write.table, "insert_or_keep", write.whole()) for write in writes if write.whole is not None)


def write_all(connection: Connection, writes: Iterable[Write]) -> None:
    """Write rows, the like together, straight through the driver: SQLAlchemy's own way takes longer than SQLite."""
    groups: dict[tuple[Table, How, tuple[str, ...]], list[Mapping[str, object]]] = {}
    for table, how, row, _ in writes:
        groups.setdefault((table, how, tuple(row)), []).append(row)
    for (table, how, columns), rows in groups.items():
        connection.exec_driver_sql(_statement(table, how, columns, connection.dialect.name), rows)


@cache
def _statement(table: Table, how: How, columns: tuple[str, ...], dialect_name: str) -> str:
    dialect, insert = _DIALECTS[dialect_name]
    primary = list(table.primary_key)
    others = [name for name in columns if not table.c[name].primary_key]
    if how == "update":
        same_row = [column == bindparam(column.name) for column in primary]
        return str(update(table).where(*same_row).compile(dialect=dialect, column_keys=others))
    inserted = insert(table)
    if how == "insert_or_keep":
        inserted = inserted.on_conflict_do_nothing(index_elements=primary)
    if how == "insert_or_replace":
        new = {name: inserted.excluded[name] for name in others}
        # A row that says the same already is left alone: to write it would cost a flush.
        differs = or_(*(table.c[name] != value for name, value in new.items()))
        inserted = inserted.on_conflict_do_update(index_elements=primary, set_=new, where=differs)
    return str(inserted.compile(dialect=dialect, column_keys=list(columns)))

"""Reflect a database by SQLAlchemy: PostgreSQL, and any database that SQLAlchemy has a driver for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fewparse.domains.sql.connection import Connection, Reflected, SchemaKey, SchemaTable, merge_schemas
from fewparse.domains.sql.database import Column, ColumnType, ForeignKey, Table
from fewparse.domains.sql.rows import QueryLimits, Rows, fetch_rows
from fewparse.domains.sql.urls import DatabaseUrl
from fewparse.errors import DatabaseError, ExecutionError

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.engine import Inspector

SYSTEM_SCHEMAS = ("information_schema", "pg_catalog", "pg_toast", "mysql", "performance_schema", "sys", "system")


class ReflectedConnection(Connection):
    """A connection to a database on which queries are not executed: it cannot be made read-only here."""

    def __init__(self, url: DatabaseUrl, schemas: Sequence[str] = ()) -> None:
        super().__init__(url, schemas)
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

        try:
            address = make_url(url.text)
            address = address.set(password=url.password) if url.password is not None else address
            self._engine = create_engine(address)
            self._connection = self._engine.connect()
        except (ImportError, NoSuchModuleError) as error:
            hint = "Install the driver that SQLAlchemy uses for this URL, or name another: mysql+pymysql://..."
            raise DatabaseError(f"the driver of {url.text} is not installed: {error}", hint) from None
        except (SQLAlchemyError, OSError) as error:
            reason = url.hide_password(str(error).strip().split("\n")[0])
            raise DatabaseError(f"the database {url.text} cannot be opened: {reason}") from None

    def query(self, sql: str, limits: QueryLimits) -> Rows:
        """Refuse the query."""
        raise ExecutionError(
            f"queries are not executed on {self.url.kind}: fewparse cannot make the connection read-only",
            "They are executed on SQLite, DuckDB and PostgreSQL.",
        )

    def query_trusted(self, sql: str, limits: QueryLimits) -> Rows:
        """Run a query of reflection; the time limit is that of the server."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            result = self._connection.exec_driver_sql(sql)
            return fetch_rows(result.keys(), result.fetchmany, limits)
        except SQLAlchemyError as error:
            raise ExecutionError(self.url.hide_password(str(error).strip().split("\n")[0])) from None
        finally:
            self._connection.rollback()

    def reflect(self) -> Reflected:
        """Read the schema."""
        return inspect_schemas(self._engine, self.url.dialect, self.schemas)

    def quote(self, name: str) -> str:
        """Return a name as an identifier of the dialect."""
        return self._engine.dialect.identifier_preparer.quote_identifier(name)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._engine.dispose()


def inspect_schemas(engine: "Engine", dialect: str, schemas: Sequence[str]) -> Reflected:
    """Return the tables, views and keys of schemas, by default of the default one; raise `DatabaseError`."""
    from sqlalchemy import inspect
    from sqlalchemy.exc import SQLAlchemyError

    try:
        inspector = inspect(engine)
        known = inspector.get_schema_names()
        default = inspector.default_schema_name or ""
        for schema in schemas:
            if schema not in known:
                shown = ", ".join(name for name in known if name not in SYSTEM_SCHEMAS)
                raise DatabaseError(f"the database has no schema {schema!r}", f"It has {shown}.")
        searched = tuple(schemas) or (default,)
        tables: list[SchemaTable] = []
        keys: list[SchemaKey] = []
        for schema in searched:
            tables += (SchemaTable(schema, table) for table in inspect_tables(inspector, schema or None))
            keys += inspect_keys(inspector, schema, default)
        merged = merge_schemas(dialect, searched, tables, keys)
        if tables:
            return merged
        others = (name for name in known if name not in (*SYSTEM_SCHEMAS, *searched))
        return replace(merged, other_schemas=tuple(name for name in others if inspector.get_table_names(name)))
    except SQLAlchemyError as error:
        raise DatabaseError(f"the database cannot be reflected: {str(error).splitlines()[0]}") from None


def inspect_tables(inspector: "Inspector", schema: str | None) -> Iterator[Table]:
    """Yield the tables and views of a schema."""
    from sqlalchemy.engine import ObjectKind

    options: dict[str, Any] = {"schema": schema, "kind": ObjectKind.ANY}
    comments = inspector.get_multi_table_comment(**options)
    keys = inspector.get_multi_pk_constraint(**options)
    for key, columns in inspector.get_multi_columns(**options).items():
        comment, primary = comments.get(key), keys.get(key)
        names = tuple(primary["constrained_columns"]) if primary else ()
        yield Table(key[1], tuple(map(as_column, columns)), names, (comment and comment["text"]) or "")


def inspect_keys(inspector: "Inspector", schema: str, default: str) -> Iterator[SchemaKey]:
    """Yield the foreign keys of the tables of a schema."""
    for (_, table), found in inspector.get_multi_foreign_keys(schema=schema or None).items():
        for key in found:
            columns, other_columns = tuple(key["constrained_columns"]), tuple(key["referred_columns"])
            foreign_key = ForeignKey(table or "", columns, key["referred_table"], other_columns)
            yield SchemaKey(schema, key["referred_schema"] or default, foreign_key)


def as_column(column: Any) -> Column:
    """Return a column that SQLAlchemy describes; the values of an enumeration are part of its type."""
    kind = column["type"]
    values = tuple(kind.enums) if hasattr(kind, "enums") else None
    return Column(column["name"], column_type(kind), column["nullable"], column.get("comment") or "", values)


def column_type(kind: Any) -> ColumnType:
    """Return the type of a column by SQLAlchemy's class; a domain of PostgreSQL has the type that it restricts."""
    from sqlalchemy import types
    from sqlalchemy.dialects.postgresql import DOMAIN

    while isinstance(kind, DOMAIN):
        kind = kind.data_type

    classes: tuple[tuple[type, ColumnType], ...] = (
        (types.Enum, "other"),  # it has no operators of text
        (types.Boolean, "boolean"),
        (types.Integer, "integer"),
        (types.Numeric, "number"),
        (types.Float, "number"),
        (types.DateTime, "datetime"),
        (types.Date, "date"),
        (types.Time, "time"),
        (types.String, "text"),
    )
    return next((name for found, name in classes if isinstance(kind, found)), "other")

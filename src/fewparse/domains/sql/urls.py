"""URLs of databases, as SQLAlchemy writes them: `sqlite:///shop.db`, `postgresql://user@host/name`.

A password is never part of the text of a `DatabaseUrl`: neither files nor messages contain it.
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from fewparse.errors import SourceError, UsageError
from fewparse.files import exists, opened, user_path

FILE_KINDS = ("sqlite", "duckdb")
"""Databases that are one file."""
DIALECTS = {
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "mssql": "tsql",
    "oracle": "oracle",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "redshift": "redshift",
    "trino": "trino",
    "clickhouse": "clickhouse",
}
"""sqlglot's name of the SQL dialect of a database, by SQLAlchemy's name of the database."""
SYNONYMS = {"postgres": "postgresql", "clickhousedb": "clickhouse"}
SECRET_PARAMETERS = ("password", "passwd", "pwd", "sslpassword", "token", "access_token", "private_key")
FORMS = "Write it as sqlite:///FILE, duckdb:///FILE or postgresql://USER@HOST/NAME."


@dataclass(frozen=True)
class DatabaseUrl:
    """The URL of a database without its password.

    `kind` is SQLAlchemy's name of the database, `path` the file of a database that is one. `text` names the
    database, and the driver if the user chose one.
    """

    text: str
    kind: str
    path: Path | None = None
    password: str | None = field(default=None, repr=False, compare=False)

    @property
    def dialect(self) -> str:
        """The name of the SQL dialect in sqlglot."""
        return DIALECTS[self.kind]

    def relative_to(self, folder: Path) -> "DatabaseUrl":
        """Return the URL with a relative path taken from a folder."""
        if self.path is None or self.path.is_absolute():
            return self
        return file_url(self.kind, folder / self.path)

    def with_password_of(self, variable: str | None) -> "DatabaseUrl":
        """Return the URL with the password of an environment variable, unless it has one."""
        if self.password is not None or variable is None:
            return self
        return replace(self, password=os.environ.get(variable) or None)

    def hide_password(self, message: str) -> str:
        """Return a message of a driver without the password."""
        for secret in filter(None, (self.password, self.password and quote(self.password, safe=""))):
            message = message.replace(secret, "***")
        return message


def file_url(kind: str, path: Path) -> DatabaseUrl:
    """Return the URL of a database that is a file; the path is not quoted, as in SQLAlchemy."""
    return DatabaseUrl(f"{kind}:///{path}", kind, path)


def parse_url(text: str) -> DatabaseUrl:
    """Return the URL of a text; raise `UsageError` if it is none, or of an unknown kind of database."""
    scheme, separator, rest = text.strip().partition("://")
    kind = scheme.partition("+")[0].lower()
    kind = SYNONYMS.get(kind, kind)
    if not separator or not kind:
        raise UsageError("this is not the URL of a database", file_hint(text) or FORMS)
    if kind not in DIALECTS:
        known = ", ".join(name for name in DIALECTS if name != "mariadb")
        raise UsageError(f"the SQL of the database {kind[:40]!r} is not supported", f"Supported: {known}.")
    if kind in FILE_KINDS:
        return parse_file_url(kind, rest)
    return parse_server_url(kind, scheme, f"{kind}://{rest}")


def parse_file_url(kind: str, rest: str) -> DatabaseUrl:
    """Return the URL of a file: three slashes before a relative path, four before an absolute one."""
    host, slash, path = rest.partition("/")
    if host or not slash:
        hint = f"Write three slashes before a relative path, four before an absolute one: {kind}:///shop.db"
        raise UsageError(f"the URL of a {kind} database names no host", hint)
    path, question, _ = path.partition("?")
    if question:
        raise UsageError(f"the URL of a {kind} database has options after `?`", "Omit them: it is opened to read.")
    if path in ("", ":memory:"):
        raise UsageError("a database in memory has no tables to ask about", f"Name a file: {kind}:///shop.db")
    return file_url(kind, user_path(path))


def parse_server_url(kind: str, scheme: str, text: str) -> DatabaseUrl:
    """Return the URL of a server, with its password apart."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:  # its message may contain a part of the password
        hint = f"{FORMS} Characters such as / and @ in a password are written as %2F and %40."
        raise UsageError("the host or the port of the database's URL cannot be read", hint) from None
    password = parts.password and unquote(parts.password)
    credentials, at, host = parts.netloc.rpartition("@")
    user = credentials.partition(":")[0]
    options = parse_qsl(parts.query, keep_blank_values=True)
    secrets = [value for name, value in options if name.lower() in SECRET_PARAMETERS]
    kept = [(name, value) for name, value in options if name.lower() not in SECRET_PARAMETERS]
    driver = scheme.partition("+")[2].lower()
    name = f"{kind}+{driver}" if driver else kind
    shown = urlunsplit((name, f"{user}{at}{host}", parts.path, urlencode(kept), ""))
    if not parts.netloc and not shown.startswith(f"{name}://"):  # urlunsplit drops the slashes of an empty host
        shown = f"{name}://{shown.removeprefix(f'{name}:')}"
    return DatabaseUrl(shown, kind, None, password or (secrets[0] if secrets else None))


def file_hint(text: str) -> str | None:
    """Return the URL of a database file that was named without one, as a hint."""
    path = user_path(text.strip())
    kind = file_kind(path) if exists(path) else None
    return kind and f"Write its URL: {kind}:///{path}"


def file_kind(path: Path) -> str | None:
    """Return the kind of a database file by its first bytes; None if it is no database, or cannot be read."""
    try:
        with opened(path, SourceError) as file:
            start = file.read(16)
    except SourceError:
        return None
    if start.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if start[8:12] == b"DUCK" else None

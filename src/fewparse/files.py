"""Read files that users name, with limits and the location of every mistake; replace files atomically."""

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fewparse.errors import DomainError, SourceError, UsageError
from fewparse.limits import FILE_BYTES

MAX_PATH_BYTES, MAX_NAME_BYTES = 4096, 255


def user_path(path: str | Path) -> Path:
    """Return a path that a user gave, with `~` expanded; raise `UsageError` if no file can have such a path."""
    text = str(path)
    if "\0" in text:
        raise UsageError("a path contains a NUL character", "Check how the path was made.")
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) > MAX_PATH_BYTES or any(len(name) > MAX_NAME_BYTES for name in encoded.split(b"/")):
        raise UsageError(f"the path {text[:40]}... has {len(encoded)} bytes, more than a file system allows")
    return Path(os.path.expanduser(text))  # Path.expanduser raises an error for an unknown user


def path_inside(folder: Path, name: str | Path) -> Path:
    """Return the path of a file in a domain folder; raise `DomainError` if it or a link in it leads out."""
    path = folder / name
    try:
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        inside = False
    if not inside:
        hint = "Copy the file into the folder. A domain uses files of its own folder only."
        raise DomainError("the path leads out of the domain folder", path, hint=hint)
    return path


def os_reason(error: OSError | ValueError) -> str:
    """Return the reason of a failed file operation in words."""
    if isinstance(error, ValueError):  # a NUL or a surrogate in the path
        return "there is no such path"
    return error.strerror or str(error) or type(error).__name__


def read_bytes(path: Path, error_type: type[SourceError], limit: float | None = None) -> bytes:
    """Return the content of a regular file of at most `limit` bytes (default: `FILE_BYTES`).

    Raises `error_type` if it cannot be read, is too large, or is a device, a pipe or a folder.
    """
    hint = FILE_BYTES.hint if limit is None else None
    limit = FILE_BYTES.value if limit is None else limit
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to waits for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise error_type("not a regular file", path)
            content = file.read(int(limit) + 1)
    except IsADirectoryError:
        raise error_type("not a regular file but a folder", path) from None
    except (OSError, ValueError) as error:
        raise error_type(f"cannot be read: {os_reason(error)}", path) from None
    if len(content) > limit:
        raise error_type(f"larger than {limit:,.0f} bytes", path, hint=hint)
    return content


def read_text(path: Path, error_type: type[SourceError], limit: float | None = None) -> str:
    """Return a regular file as UTF-8 text, with newlines as its only line breaks.

    Raises `error_type` if it cannot be read, is too large, or is not UTF-8.
    """
    try:
        text = read_bytes(path, error_type, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise error_type(f"not UTF-8 text (byte {error.start + 1})", path) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_toml(source: str, path: Path) -> dict[str, Any]:
    """Parse TOML; a mistake is a `DomainError` with line, column and caret."""
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        position = re.search(r"line (\d+), column (\d+)", str(error))
        line = int(position[1]) if position else source.count("\n") + 1
        column = int(position[2]) if position else None
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise DomainError(f"not valid TOML: {message}", path, line, column, source) from None
    except RecursionError:
        raise DomainError("not readable TOML: its values are nested too deeply", path) from None
    except ValueError as error:  # such as a number with thousands of digits
        raise DomainError(f"not readable TOML: {error}", path) from None


def parse_json_line(
    text: str,
    number: int,
    path: Path,
    error_type: type[SourceError],
    hint: str | None = None,
    unique_keys: bool = False,
) -> dict[str, Any]:
    """Parse one line of a JSON-lines file as an object; a mistake is an `error_type` with line and column.

    With `unique_keys`, a key that occurs twice is a mistake; otherwise its last value counts.
    """

    def mistake(message: str, column: int | None) -> SourceError:
        return error_type(message, path, number, column, "\n" * (number - 1) + text, hint)

    try:
        value = json.loads(text, object_pairs_hook=unique_object if unique_keys else None)
    except json.JSONDecodeError as error:
        raise mistake(f"not valid JSON: {error.msg}", error.colno) from None
    except DuplicateKey as error:
        raise mistake(f"the key {error.args[0]!r} occurs twice", None) from None
    except RecursionError:
        raise error_type("not readable JSON: its values are nested too deeply", path, number, hint=hint) from None
    except ValueError as error:
        raise error_type(f"not readable JSON: {error}", path, number, hint=hint) from None
    if not isinstance(value, dict):
        raise mistake("expected an object", 1)
    return value


class DuplicateKey(Exception):
    """A key that occurs twice in an object."""


def unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of its keys and values; raise `DuplicateKey` if two values have the same key."""
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise DuplicateKey(next(key for key in keys if keys.count(key) > 1))
    return value


@contextmanager
def atomic_replacement(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `path` when the block ends without an error.

    A process that is killed leaves the old file or the new one. The temporary file is next to it, with the
    process id in its name, so that two processes never write to the same one.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a process that is killed leaves the old content or the new one; raise `OSError`."""
    with atomic_replacement(path) as temporary:
        temporary.write_bytes(content)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, so that a renamed file survives a power failure."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

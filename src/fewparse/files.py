"""Read files that users name, with limits and the location of every mistake; replace files atomically."""

import errno
import gzip
import hashlib
import json
import os
import re
import secrets
import stat
import time
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, BytesIO, FileIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from platformdirs import user_cache_path

from fewparse.errors import DomainError, SourceError, UsageError
from fewparse.limits import FILE_BYTES, Limit

MAX_PATH_BYTES, MAX_NAME_BYTES = 4096, 255
BLOCK_BYTES = 1 << 20
ABANDONED_SECONDS = 3600
FILE_KINDS = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}


def user_path(path: str | Path) -> Path:
    """Return a path that a user gave, with `~` expanded; raise `UsageError` if no file can have such a path."""
    text = str(path)
    if "\0" in text:
        raise UsageError("a path contains a NUL character", "Check how the path was made.")
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) > MAX_PATH_BYTES or any(len(name) > MAX_NAME_BYTES for name in encoded.split(b"/")):
        raise UsageError(f"the path {text[:40]}... has {len(encoded)} bytes, more than a file system allows")
    return Path(os.path.expanduser(text))  # Path.expanduser raises an error for an unknown user


def cache_folder() -> Path:
    """Return the folder for files that can be restored: `FEWPARSE_CACHE` or the user's cache directory."""
    chosen = os.environ.get("FEWPARSE_CACHE")
    return Path(chosen) if chosen else user_cache_path("fewparse")


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


def exists(path: Path) -> bool:
    """Return whether there is a file or folder at a path, of whatever kind.

    If the system does not say, such as for a symbolic link to itself or without permission, the result is true:
    reading the path then fails with the reason.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def read_bytes(path: Path, error_type: type[SourceError], limit: Limit | float = FILE_BYTES) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises `error_type` if it cannot be read, is too large, or is a device, a pipe, a socket or a folder.
    """
    with opened(path, error_type) as file:
        content = read_at_most(file, bytes_of(limit), os.fstat(file.fileno()).st_size)
    if content is None:
        raise error_type(too_large(limit), path, hint=hint_of(limit))
    return content


def file_sha256(path: Path, error_type: type[SourceError]) -> str:
    """Return the SHA-256 of a regular file of any size; raise `error_type` if it cannot be read."""
    digest = hashlib.sha256()
    with opened(path, error_type) as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def opened(path: Path, error_type: type[SourceError]) -> Iterator[FileIO]:
    """Open a regular file for a context; an error in it becomes an `error_type`, like a path of another kind."""
    try:
        check_regular(os.stat(path).st_mode, path, error_type)  # opening a device can have effects
        # It may have been exchanged since: without O_NONBLOCK, opening a pipe without a writer waits for ever.
        flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
        with open(os.open(path, os.O_RDONLY | sum(flags)), "rb", buffering=0) as file:
            check_regular(os.fstat(file.fileno()).st_mode, path, error_type)
            yield file
    except (OSError, ValueError) as error:
        raise error_type(f"cannot be read: {os_reason(error)}", path) from None


def check_regular(mode: int, path: Path, error_type: type[SourceError]) -> None:
    """Raise `error_type` unless the mode is the one of a regular file."""
    if not stat.S_ISREG(mode):
        raise error_type(f"not a regular file but a {FILE_KINDS.get(stat.S_IFMT(mode), 'device')}", path)


def read_at_most(file: FileIO | BinaryIO, limit: int, expected: int = 0) -> bytes | None:
    """Return the rest of an open file; None if it has, or is expected to have, more than `limit` bytes.

    It is read in blocks: a file may grow while it is read, and the files of /proc have no size.
    """
    if expected > limit:
        return None
    content = bytearray()
    while block := file.read(min(BLOCK_BYTES, limit + 1 - len(content))):
        content += block
        if len(content) > limit:
            return None
    if block is None:
        raise BlockingIOError(errno.EAGAIN, "it has no content at this time")
    return bytes(content)


def decompress(
    content: bytes, path: Path, error_type: type[SourceError], limit: Limit | float = FILE_BYTES
) -> bytes:
    """Return the unpacked content of a gzip file, which may have several members, of at most `limit` bytes.

    Raises `error_type` if it is damaged, incomplete or too large; no more than `limit` bytes are unpacked.
    """
    with gzip_errors(path, error_type), gzip.GzipFile(fileobj=BytesIO(content)) as file:
        unpacked = read_at_most(cast(BinaryIO, file), bytes_of(limit))
    if unpacked is None:
        raise error_type(f"unpacked {too_large(limit)}", path, hint=hint_of(limit))
    return unpacked


def read_lines(path: Path, error_type: type[SourceError], limit: Limit | float = FILE_BYTES) -> Iterator[bytes]:
    """Yield the lines of a regular file, unpacked if its name ends in .gz, without reading it as a whole.

    Raises `error_type` if it cannot be read, is damaged, or has more than `limit` bytes, unpacked.
    """
    left = bytes_of(limit)
    with opened(path, error_type) as file, gzip_errors(path, error_type), BufferedReader(file) as packed:
        is_gzip = path.suffix == ".gz"
        lines = gzip.GzipFile(fileobj=packed) if is_gzip else packed
        while line := lines.readline(left + 1):
            left -= len(line)
            if left < 0:
                message = f"unpacked {too_large(limit)}" if is_gzip else too_large(limit)
                raise error_type(message, path, hint=hint_of(limit))
            yield line


@contextmanager
def gzip_errors(path: Path, error_type: type[SourceError]) -> Iterator[None]:
    """Turn the error of an incomplete or damaged gzip file into an `error_type`."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        hint = "Check that the file is complete and unchanged, or copy or download it again."
        raise error_type(f"not a complete gzip file: {error}", path, hint=hint) from None


def bytes_of(limit: Limit | float) -> int:
    """Return a limit as a number of bytes."""
    return int(limit.value if isinstance(limit, Limit) else limit)


def too_large(limit: Limit | float) -> str:
    """Return the message for a file beyond a limit."""
    return f"larger than {bytes_of(limit):,} bytes"


def hint_of(limit: Limit | float) -> str | None:
    """Return how to raise a limit, if it can be raised."""
    return limit.hint if isinstance(limit, Limit) else None


def read_text(path: Path, error_type: type[SourceError], limit: Limit | float = FILE_BYTES) -> str:
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
        raise DomainError(f"not readable TOML: {value_reason(error)}", path) from None


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
        return error_type(message, path, number, column, at_line(text, number), hint)

    try:
        value = json.loads(text, object_pairs_hook=unique_object if unique_keys else None)
    except json.JSONDecodeError as error:
        raise mistake(f"not valid JSON: {error.msg}", error.colno) from None
    except DuplicateKey as error:
        raise mistake(f"the key {error.args[0]!r} occurs twice", None) from None
    except RecursionError:
        raise error_type("not readable JSON: its values are nested too deeply", path, number, hint=hint) from None
    except ValueError as error:  # such as a number with thousands of digits
        raise error_type(f"not readable JSON: {value_reason(error)}", path, number, hint=hint) from None
    if not isinstance(value, dict):
        raise mistake("expected an object", 1)
    return value


def value_reason(error: ValueError) -> str:
    """Return why a value cannot be read; Python's own message for a long number names a function of Python."""
    return "a number has too many digits" if "digits" in str(error) else str(error)


class DuplicateKey(Exception):
    """A key that occurs twice in an object."""


def unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of its keys and values; raise `DuplicateKey` if two values have the same key."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise DuplicateKey(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return value


def at_line(text: str, number: int) -> str:
    """Return a source whose line of this number is the text, for the message of a `SourceError`."""
    return "\n" * (number - 1) + text


@contextmanager
def atomic_replacement(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `path` when the block ends without an error.

    A process that is killed leaves the old file or the new one. The temporary file is next to it and its name is
    unique; those of killed processes are deleted after an hour. A symbolic link stays, and its target is replaced.
    Raises `OSError` if the file cannot be written, or is a device or a folder.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        delete_abandoned(path)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        check_replaceable(path)
        os.replace(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(path: Path) -> None:
    """Raise `OSError` if a path is a folder or a device, which no file may replace."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "it is not a regular file")


def delete_abandoned(path: Path) -> None:
    """Delete temporary files for a path that killed processes have left."""
    names = re.compile(rf"{re.escape(path.name)}\.\d+-[0-9a-f]{{8}}\.part")
    for entry in os.scandir(path.parent):
        with suppress(FileNotFoundError):
            if names.fullmatch(entry.name) and entry.stat().st_mtime < time.time() - ABANDONED_SECONDS:
                os.unlink(entry.path)


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

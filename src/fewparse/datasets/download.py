"""Download files, mostly of known checksum: interrupted downloads resume, and incomplete files never appear.

The received bytes remain in a `.part` file next to the target. Each download writes to a scratch file with a
unique name, which starts as a copy of that one, so that concurrent downloads never write to the same file.
"""

import glob
import math
import os
import re
import secrets
import shutil
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from urllib.error import HTTPError, URLError

from fewparse.datasets.checksum import Checksum
from fewparse.datasets.storage import not_writable
from fewparse.errors import CorruptData, DataUnavailable, UsageError
from fewparse.retry import MAX_WAIT, RetryableError, RetryPolicy, exponential_wait, parse_retry_after

MAX_ATTEMPTS = 4
RETRY = RetryPolicy(timeout=30.0, deadline=math.inf, max_attempts=MAX_ATTEMPTS)
FIRST_WAIT = 1.0
# A running download pauses for less: two timeouts and the wait between them.
ABANDONED_SECONDS = 180
BLOCK_SIZE = 1 << 15
MAX_BYTES = 100 << 20
"""The limit on a file of unknown size: GitHub accepts none that is larger."""
RETRYABLE_STATUSES = {408, 429, 500, 502, 503, 504}
ALTERNATIVES = (
    "Try again later, use a mirror (--from URL), or get the files by other means "
    "and import them: fewparse data import NAME DIR"
)

Progress = Callable[[int, int | None], None]
"""Called with the bytes received and the total, over all files; not called if all files are complete.

The total is None if the size of a file is unknown.
"""


@dataclass(frozen=True)
class RemoteFile:
    """A published file and the path to store it at; `size` and `checksum` are None if they are unknown.

    The failure to download an optional file is not an error of the whole download.
    """

    url: str
    path: Path
    size: int | None
    checksum: Checksum | None
    optional: bool = False

    @property
    def largest_size(self) -> int:
        """The size, or the limit on a file of unknown size."""
        return MAX_BYTES if self.size is None else self.size


class RestartRequired(Exception):
    """The part received earlier cannot be resumed."""


def fetch_all(
    files: Sequence[RemoteFile], progress: Progress | None = None, force: bool = False
) -> tuple[str, ...]:
    """Download the files that are missing or incomplete, or all of them with `force`.

    Returns the reasons why optional files could not be downloaded; such a file is absent then, or complete from
    an earlier download.
    """
    sizes = [file.size for file in files if file.size is not None]
    total = sum(sizes) if len(sizes) == len(files) else None
    before = 0
    failures: list[str] = []
    for file in files:

        def report(done: int, before: int = before) -> None:
            if progress:
                progress(before + done, total)

        try:
            if force or not is_complete(file.path, file):
                failures += fetch_or_explain(file, report, force)
            before += file.path.stat().st_size if file.path.exists() else 0
        except OSError as error:
            raise not_writable(file.path.parent, error) from None
    return tuple(failures)


def fetch_or_explain(file: RemoteFile, report: Callable[[int], None], force: bool) -> list[str]:
    """Download one file; if it is optional and that fails, return the reason instead of raising it."""
    try:
        fetch(file, report, force)
    except (DataUnavailable, CorruptData) as error:
        if not file.optional:
            raise
        if not is_complete(file.path, file):
            file.path.unlink(missing_ok=True)
        return [error.message]
    report(file.path.stat().st_size)
    return []


def is_complete(path: Path, file: RemoteFile) -> bool:
    """Return whether the path holds the published file, by its checksum and its size, as far as they are known."""
    if not os.path.isfile(path) or file.size not in (None, path.stat().st_size):
        return False
    if file.checksum is None:
        return True
    with path.open("rb") as content:
        return file.checksum.matches_file(content)


def fetch(file: RemoteFile, report: Callable[[int], None], force: bool = False) -> None:
    """Download one file, resuming an earlier download unless `force`; raise OSError if it cannot be written."""
    file.path.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.path.with_name(f"{file.path.name}.{secrets.token_hex(6)}.part")
    take_over_parts(file.path, scratch)
    if force or file.checksum is None:  # without a checksum, a damaged part would not be noticed
        scratch.unlink(missing_ok=True)
    try:
        fetch_with_retries(file, scratch, report)
        os.replace(scratch, file.path)
    finally:
        if scratch.exists():
            os.replace(scratch, part_path(file.path))


def part_path(path: Path) -> Path:
    """Return the path at which an unfinished download is stored for the next one."""
    return path.with_name(f"{path.name}.part")


def take_over_parts(path: Path, scratch: Path) -> None:
    """Start from the longest part of earlier downloads, including those whose process was killed."""
    parts: list[tuple[int, Path]] = []
    for part in (part_path(path), *map(Path, glob.glob(f"{glob.escape(str(path))}.*.part"))):
        with suppress(FileNotFoundError):
            state = part.stat()
            if part == part_path(path) or state.st_mtime < time.time() - ABANDONED_SECONDS:
                parts.append((state.st_size, part))
    for _, part in sorted(parts):
        with suppress(FileNotFoundError):  # taken by a concurrent download
            shutil.copyfile(part, scratch)
            part.unlink()


def fetch_with_retries(file: RemoteFile, scratch: Path, report: Callable[[int], None]) -> None:
    """Download until the scratch file is the published one; raise DataUnavailable after too many failures."""
    failures = 0
    while True:
        resumed = scratch.exists()
        try:
            fetch_once(file, scratch, report)
            if is_complete(scratch, file):
                return
            scratch.unlink()
            if resumed:  # the earlier part may be damaged
                continue
            checksum = f": its {file.checksum.kind} is not {file.checksum.value}" if file.checksum else ""
            raise CorruptData(f"{file.url} is not the published file{checksum}", ALTERNATIVES)
        except RestartRequired:
            scratch.unlink()
        except RetryableError as error:
            wait = exponential_wait(failures, FIRST_WAIT) if error.retry_after is None else error.retry_after
            failures += 1
            if failures == RETRY.max_attempts or wait > MAX_WAIT:
                raise DataUnavailable(f"{file.url} cannot be downloaded: {error}", ALTERNATIVES) from None
            time.sleep(wait)


def fetch_once(file: RemoteFile, scratch: Path, report: Callable[[int], None]) -> None:
    """Request the missing bytes once, and append them to the scratch file."""
    received = scratch.stat().st_size if scratch.exists() else 0
    if received and file.checksum is not None and is_complete(scratch, file):
        return
    if received and received >= file.largest_size:
        raise RestartRequired
    with request(file.url, received) as response:
        start = first_byte(response, received)
        expected = expected_size(response, start, file)
        with scratch.open("r+b" if received else "wb") as target:
            target.seek(start)
            target.truncate()
            done = start
            while done <= file.largest_size and (block := read_block(response)):
                done += len(block)
                if done <= file.largest_size:
                    target.write(block)
                    report(done)
            target.flush()
            os.fsync(target.fileno())
    if done > file.largest_size:
        scratch.unlink()
        raise wrong_size(file, f"over {file.largest_size}")
    if expected is not None and done < expected:
        raise RetryableError(f"the connection was lost after {done} of {expected} bytes")


def request(url: str, start: int) -> HTTPResponse:
    """Request a file from byte `start` on; raise RetryableError if a retry may succeed."""
    if not url.lower().startswith(("http://", "https://")):
        raise UsageError(f"{url} is not a web address", "Addresses start with https:// or http://.")
    headers = {"User-Agent": "fewparse", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        prepared = urllib.request.Request(url, headers=headers)
        response: HTTPResponse = urllib.request.build_opener().open(prepared, timeout=RETRY.timeout)
        return response
    except HTTPError as error:
        with error:
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
                raise RestartRequired from None
            reason = f"the server returned {error.code} {error.reason}".rstrip()
            if error.code in RETRYABLE_STATUSES:
                wait = parse_retry_after(error.headers.get("Retry-After"))
                if wait:
                    reason += f" and requests a wait of {wait:.0f} s"
                raise RetryableError(reason, wait) from None
            raise DataUnavailable(f"{url} cannot be downloaded: {reason}", ALTERNATIVES) from None
    except (InvalidURL, ValueError) as error:
        raise UsageError(f"{url} is not a web address: {error}") from None
    except (OSError, HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
        dropped = isinstance(cause, ConnectionError | TimeoutError | HTTPException)
        if dropped and not isinstance(cause, ConnectionRefusedError):
            raise RetryableError(reason or "no response") from None
        hint = f"Check the network connection. {ALTERNATIVES}"
        raise DataUnavailable(f"{url} cannot be downloaded: {reason}", hint) from None


def first_byte(response: HTTPResponse, requested: int) -> int:
    """Return the offset in the file of the response: the requested one, or 0 if the range was ignored."""
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if found is not None and found[1] == str(requested):
        return requested
    raise RestartRequired if requested else RetryableError("the server sends only part of the file")


def expected_size(response: HTTPResponse, start: int, file: RemoteFile) -> int | None:
    """Return the size of the whole file, by what is known of it or by the response; None if neither states it.

    Raises `CorruptData` if the response states a size that the file cannot have.
    """
    length = re.fullmatch(r"\d{1,18}", response.headers.get("Content-Length", ""))
    stated = start + int(length[0]) if length else None
    if stated is not None and (stated > file.largest_size or file.size not in (None, stated)):
        raise wrong_size(file, str(stated))
    return stated if file.size is None else file.size


def read_block(response: HTTPResponse) -> bytes:
    """Return the next bytes of a response; none at its end."""
    try:
        return response.read(BLOCK_SIZE)
    except (OSError, HTTPException) as error:
        raise RetryableError(f"the connection was lost: {error}") from None


def wrong_size(file: RemoteFile, size: str) -> CorruptData:
    """Return the error for a file of another size than the published one."""
    possible = f"at most {MAX_BYTES}" if file.size is None else str(file.size)
    return CorruptData(
        f"{file.url} is not the published file: its size is {size}, not {possible} bytes", ALTERNATIVES
    )

"""Fetch files whose size and SHA-256 are known: resumed where they were left, whole or not at all.

What has arrived is left in a `.part` file beside the target. A download works in a file with a name of its own,
begun as a copy of that one, so two downloads at once never write to the same file.
"""

import glob
import hashlib
import os
import re
import secrets
import shutil
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from urllib.error import HTTPError, URLError

from fewparse.datasets.storage import not_writable
from fewparse.errors import CorruptData, DataUnavailable, UsageError

TRIES = 4
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
TIMEOUT_SECONDS = 30.0
# Longer than a living download can be silent: two time-outs and a wait between them.
ABANDONED_SECONDS = 180
BLOCK = 1 << 15
PASSING = {408, 429, 500, 502, 503, 504}
ANOTHER_WAY = (
    "Try again later, use a mirror (--from URL), or get the files by other means "
    "and import them: fewparse data import NAME DIR"
)

Progress = Callable[[int, int], None]
"""Told the bytes done and the bytes in all, over all files; never told anything if all are there."""


@dataclass(frozen=True)
class RemoteFile:
    """A published file, and where it is to be kept."""

    url: str
    path: Path
    size: int
    sha256: str


class TryAgain(Exception):
    """A fault that may pass; `wait` is how long the server asks us to stay away."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class StartAfresh(Exception):
    """What had been fetched before cannot be carried on."""


def fetch_all(files: Sequence[RemoteFile], progress: Progress | None = None, force: bool = False) -> None:
    """Make sure that all files are there and whole; fetch those that are not, or all of them if forced."""
    total = sum(file.size for file in files)
    before = 0
    for file in files:

        def report(done: int, before: int = before) -> None:
            if progress:
                progress(before + done, total)

        try:
            if force or not is_whole(file.path, file):
                fetch(file, report, force)
                report(file.size)
        except OSError as error:
            raise not_writable(file.path.parent, error) from None
        before += file.size


def is_whole(path: Path, file: RemoteFile) -> bool:
    """Whether this is the published file, to the last bit."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256


def fetch(file: RemoteFile, report: Callable[[int], None], force: bool = False) -> None:
    """Fetch one file, carrying on what an earlier download has left; `OSError` if the disk refuses."""
    file.path.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.path.with_name(f"{file.path.name}.{secrets.token_hex(6)}.part")
    take_over(file.path, scratch)
    if force:
        scratch.unlink(missing_ok=True)
    try:
        persist(file, scratch, report)
        os.replace(scratch, file.path)
    finally:
        if scratch.exists():
            os.replace(scratch, part_of(file.path))


def part_of(path: Path) -> Path:
    """Where an unfinished download is left for the next one."""
    return path.with_name(f"{path.name}.part")


def take_over(path: Path, scratch: Path) -> None:
    """Begin with the most that an earlier download has left, be it given back or abandoned by a killed process."""
    left: list[tuple[int, Path]] = []
    for part in (part_of(path), *map(Path, glob.glob(f"{glob.escape(str(path))}.*.part"))):
        with suppress(FileNotFoundError):
            state = part.stat()
            if part == part_of(path) or state.st_mtime < time.time() - ABANDONED_SECONDS:
                left.append((state.st_size, part))
    for _, part in sorted(left):
        with suppress(FileNotFoundError):  # another download was quicker
            shutil.copyfile(part, scratch)
            part.unlink()


def persist(file: RemoteFile, scratch: Path, report: Callable[[int], None]) -> None:
    """Ask until the scratch file is the published one; a few times only, and with growing pauses."""
    faults = 0
    while True:
        begun = scratch.exists()
        try:
            transfer(file, scratch, report)
            if is_whole(scratch, file):
                return
            scratch.unlink()
            if begun:  # the fault may lie in what was there before
                continue
            raise CorruptData(
                f"{file.url} is not the published file: its SHA-256 is another than {file.sha256}", ANOTHER_WAY
            )
        except StartAfresh:
            scratch.unlink()
        except TryAgain as fault:
            faults += 1
            wait = FIRST_WAIT_SECONDS * 2 ** (faults - 1) if fault.wait is None else fault.wait
            if faults == TRIES or wait > LONGEST_WAIT_SECONDS:
                raise DataUnavailable(f"{file.url} cannot be fetched: {fault}", ANOTHER_WAY) from None
            time.sleep(wait)


def transfer(file: RemoteFile, scratch: Path, report: Callable[[int], None]) -> None:
    """Ask once for what is missing, and append it."""
    have = scratch.stat().st_size if scratch.exists() else 0
    if have > file.size:
        raise StartAfresh
    if have == file.size and have:
        return
    with ask(file.url, have) as response:
        begin = first_byte(response, have)
        announced = re.fullmatch(r"\d{1,18}", response.headers.get("Content-Length", ""))
        if announced and begin + int(announced[0]) != file.size:
            raise wrong_size(file, str(begin + int(announced[0])))
        with scratch.open("r+b" if have else "wb") as target:
            target.seek(begin)
            target.truncate()
            done = begin
            while done <= file.size and (block := receive(response)):
                done += len(block)
                if done <= file.size:
                    target.write(block)
                    report(done)
            target.flush()
            os.fsync(target.fileno())
    if done > file.size:
        scratch.unlink()
        raise wrong_size(file, f"over {file.size}")
    if done < file.size:
        raise TryAgain(f"the connection was lost after {done} of {file.size} bytes")


def ask(url: str, have: int) -> HTTPResponse:
    """The answer to a request for a file from a byte on."""
    if not url.lower().startswith(("http://", "https://")):
        raise UsageError(f"{url} is no web address", "Addresses begin with https:// or http://.")
    headers = {"User-Agent": "fewparse", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        answer: HTTPResponse = urllib.request.build_opener().open(request, timeout=TIMEOUT_SECONDS)
        return answer
    except HTTPError as error:
        with error:
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                raise StartAfresh from None
            reason = f"the server answers {error.code} {error.reason}".rstrip()
            if error.code in PASSING:
                wait = asked_to_wait(error.headers.get("Retry-After"))
                raise TryAgain(f"{reason} and asks to wait {wait:.0f} s" if wait else reason, wait) from None
            raise DataUnavailable(f"{url} cannot be fetched: {reason}", ANOTHER_WAY) from None
    except (InvalidURL, ValueError) as error:
        raise UsageError(f"{url} is no web address: {error}") from None
    except (OSError, HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
        dropped = isinstance(cause, ConnectionError | TimeoutError | HTTPException)
        if dropped and not isinstance(cause, ConnectionRefusedError):
            raise TryAgain(reason or "no answer") from None
        raise DataUnavailable(f"{url} cannot be fetched: {reason}", f"Is there a network? {ANOTHER_WAY}") from None


def asked_to_wait(header: str | None) -> float | None:
    """The seconds in a `Retry-After`, which may be a number or a date."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def first_byte(response: HTTPResponse, have: int) -> int:
    """The place in the file of what the server sends: where we asked for it, or the beginning."""
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if found is not None and found[1] == str(have):
        return have
    raise StartAfresh if have else TryAgain("the server sends a part of the file only")


def receive(response: HTTPResponse) -> bytes:
    """The next bytes of an answer; none at its end."""
    try:
        return response.read(BLOCK)
    except (OSError, HTTPException) as error:
        raise TryAgain(f"the connection was lost: {error}") from None


def wrong_size(file: RemoteFile, found: str) -> CorruptData:
    """The complaint about a file that is too long or too short to be the published one."""
    return CorruptData(
        f"{file.url} is not the published file: its size is {found}, not {file.size} bytes", ANOTHER_WAY
    )

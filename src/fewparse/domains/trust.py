"""Which domain folders the user trusts, so that the command line runs their code and opens their databases.

Each trusted folder has a record, a small JSON file, in the user's configuration folder. The name of the record is
a hash of the folder's resolved path: a folder that was moved is not trusted, and commands that run at the same
time never change each other's records.
"""

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from fewparse.errors import SourceError, UsageError
from fewparse.files import os_reason, read_bytes, user_path, write_atomically

MAX_RECORD_BYTES = 100_000
CONFIG_VARIABLE = "FEWPARSE_CONFIG"


def config_folder() -> Path:
    """Return the user's configuration folder; `FEWPARSE_CONFIG` overrides it."""
    chosen = os.environ.get(CONFIG_VARIABLE)
    return user_path(chosen) if chosen else user_config_path("fewparse")


def trust_folder(folder: Path) -> Path:
    """Record that a folder is trusted, and return its resolved path; raise `UsageError` if that is impossible."""
    resolved = resolve(folder)
    if not (resolved / "domain.toml").is_file():
        raise UsageError(f"{folder} is not a domain folder: it has no domain.toml")
    owner, writable = owner_of(resolved)
    if writable:
        raise UsageError(
            f"{folder} cannot be trusted: every user of this machine can change its files",
            f"Change its permissions first: chmod o-w {folder}",
        )
    content = json.dumps({"folder": str(resolved), "owner": owner}).encode()
    try:
        write_atomically(record_path(resolved), content)
    except OSError as error:
        hint = f"Set {CONFIG_VARIABLE} to a writable folder, or use --allow-code."
        raise UsageError(f"{record_path(resolved)} cannot be written: {os_reason(error)}", hint) from None
    return resolved


def distrust_folder(folder: Path) -> bool:
    """Remove the record of a folder, which may no longer exist; return whether there was one."""
    path = record_path(resolve(folder))
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"{path} cannot be removed: {os_reason(error)}") from None
    return True


def is_trusted(folder: Path, on_warning: Callable[[str], None] = lambda message: None) -> bool:
    """Return whether the user trusts a folder.

    `on_warning` receives the reason if there is a record that does not hold: it cannot be read, the folder has
    another owner than before, or every user can change its files.
    """
    resolved = resolve(folder)
    path = record_path(resolved)
    if not os.path.exists(path):  # also if the folder of the records cannot be read
        return False
    try:
        record = read_record(path)
        owner, writable = owner_of(resolved)
    except (SourceError, OSError) as error:
        on_warning(str(error))
        return False
    if writable:
        on_warning(f"{folder} is not trusted: every user of this machine can change its files")
    elif owner != record["owner"]:
        on_warning(f"{folder} is no longer trusted: it belongs to another user than before")
    return not writable and record == {"folder": str(resolved), "owner": owner}


def not_trusted(folder: Path, key: str) -> tuple[str, str]:
    """Return why a function that domain.toml names is not run, or its database is not opened, and what to do."""
    is_database = key == "database"
    return (
        f"the {key.replace('_', ' ')} was not {'opened' if is_database else 'run'}: the folder is not trusted",
        f"Review {'[database] in its domain.toml' if is_database else 'its code'}, then: "
        f"fewparse trust {shlex.quote(str(folder))}, or --allow-code (in Python, allow_code=True).",
    )


def trusted_folders(on_warning: Callable[[str], None]) -> list[Path]:
    """Return all folders that have a record, sorted; `on_warning` receives why a record cannot be read."""
    folders = []
    for path in sorted((config_folder() / "trusted").glob("*.json")):
        try:
            folders.append(Path(read_record(path)["folder"]))
        except SourceError as error:
            on_warning(str(error))
    return sorted(folders)


def read_record(path: Path) -> dict[str, Any]:
    """Return a record; raise `SourceError` if it is damaged or was written by another user."""
    hint = f"Delete {path}, then trust the folder again."
    content = read_bytes(path, SourceError, MAX_RECORD_BYTES)
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        record = None
    if not (
        isinstance(record, dict)
        and set(record) == {"folder", "owner"}
        and isinstance(record["folder"], str)
        and type(record["owner"]) is int
        and record_path(Path(record["folder"])).name == path.name
    ):
        raise SourceError("this record of a trusted folder is damaged: the folder is not trusted", path, hint=hint)
    if path.stat().st_uid not in users():
        raise SourceError("this record of a trusted folder belongs to another user", path, hint=hint)
    return record


def users() -> tuple[int, ...]:
    """Return the users whose records count: this one and the administrator."""
    return (os.getuid(), 0) if hasattr(os, "getuid") else (0,)


def record_path(resolved: Path) -> Path:
    """Return the path of the record of a folder."""
    name = hashlib.sha256(str(resolved).encode(errors="surrogatepass")).hexdigest()
    return config_folder() / "trusted" / f"{name}.json"


def resolve(folder: Path) -> Path:
    """Return the path of a folder without symbolic links."""
    return Path(os.path.realpath(user_path(folder)))


def owner_of(folder: Path) -> tuple[int, bool]:
    """Return the owner of a folder, and whether every user can write to it or to its code."""
    found = folder.stat()
    modes = [found.st_mode, *(path.stat().st_mode for path in folder.glob("*.py") if path.is_file())]
    return found.st_uid, os.name == "posix" and any(mode & stat.S_IWOTH for mode in modes)

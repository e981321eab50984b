"""Indexes of large pools on disk: the arrays that a retriever computes from the utterances of its pool.

A file is named by the hash of what its arrays are computed from. One that is damaged, or holds something else, is
ignored with a warning and replaced.
"""

import hashlib
import os
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewparse.errors import FewparseError
from fewparse.files import atomic_replacement, cache_folder, os_reason
from fewparse.locks import file_lock

Arrays = Mapping[str, NDArray[Any]]
MIN_UTTERANCES = 5_000
"""Smaller pools are indexed faster than a file is read."""
MAX_FILES = 8
"""The files beyond this number that were not used for the longest time are deleted."""
MAX_WAIT_SECONDS = 600.0
KEY = "key"


def stored_arrays(
    kind: str, utterances: Sequence[str], names: Sequence[str], compute: Callable[[], Arrays]
) -> Arrays:
    """Return the arrays of an index, from its file if there is one, or computed and stored.

    `kind` names what else the arrays depend on: the retriever and the versions of its data. `names` are those of
    the arrays. While a process computes them, others wait for it. An index that cannot be stored is a warning.
    """
    if len(utterances) < MIN_UTTERANCES:
        return compute()
    key = pool_hash(kind, utterances)
    path = index_folder() / f"{key}.npz"
    found = read_arrays(path, key, names)
    if found is not None:
        return found
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(file_lock(path.with_suffix(".lock"), MAX_WAIT_SECONDS))
            found = read_arrays(path, key, names)  # another process may have made it meanwhile
        except (OSError, FewparseError) as error:
            warnings.warn(f"the index {path} is not locked: {error}", stacklevel=2)
        if found is not None:
            return found
        made = compute()
        write_arrays(path, key, made)
        return made


def index_folder() -> Path:
    """Return the folder of all indexes."""
    return cache_folder() / "indexes"


def pool_hash(kind: str, utterances: Sequence[str]) -> str:
    """Return the hash of a kind of index and the utterances in order."""
    found = hashlib.sha256(kind.encode())
    for utterance in utterances:
        data = utterance.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()


def read_arrays(path: Path, key: str, names: Sequence[str]) -> Arrays | None:
    """Return the arrays of a file; None if there is none, or, with a warning, if it is not the index."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if stored[KEY].tobytes() != key.encode():
                raise ValueError("it is the index of something else")
            arrays = {name: stored[name] for name in names}
        os.utime(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        warnings.warn(f"the index {path} cannot be used and is made again: {error}", stacklevel=3)
        return None
    return arrays


def write_arrays(path: Path, key: str, arrays: Arrays) -> None:
    """Write a file and delete those that were not used for the longest time; warn if that is impossible."""
    content: dict[str, Any] = {KEY: np.frombuffer(key.encode(), np.uint8), **arrays}
    try:
        with atomic_replacement(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **content)
        files = sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime, reverse=True)
        for old in files[MAX_FILES:]:
            old.unlink(missing_ok=True)
            old.with_suffix(".lock").unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(f"the index {path} is not stored: {os_reason(error)}", stacklevel=3)

"""Replace a folder as a whole: a process that is killed leaves the old folder or the new one.

The new folder is written next to the old one, `.NAME.new` next to `NAME`, and then exchanged with it in one system
call. Where the system has none, the new folder is marked as complete (`.NAME.ready`), the old one is moved away
(`.NAME.old`), and the new one takes its place; if the process is killed between, `recover` completes that.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fewparse.files import exists, sync_folder

AT_FDCWD, RENAME_EXCHANGE = -100, 2
NOT_SUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
NEW, READY, OLD = "new", "ready", "old"


def sibling(folder: Path, purpose: str) -> Path:
    """Return the path of a hidden file or folder next to a folder; of a symbolic link, next to its target."""
    real = Path(os.path.realpath(folder))
    return real.with_name(f".{real.name}.{purpose}")


@contextmanager
def new_content(folder: Path, outdated: Collection[str] = ()) -> Iterator[Path]:
    """Yield an empty folder, whose files are put into `folder` at the end of the block: all or nothing.

    The outdated files, given by their relative paths, are deleted; other files of the folder stay. The caller
    holds a lock: no other process may write to the folder. Raises `OSError` if it cannot be written; the folder is
    then unchanged.
    """
    recover(folder)
    real, new = Path(os.path.realpath(folder)), sibling(folder, NEW)
    try:
        new.mkdir(parents=True)
        yield new
        written = {path.relative_to(new).as_posix() for path in files_below(new)}
        if os.path.isdir(real):
            shutil.copymode(real, new)
            link_others(real, new, {*written, *outdated})
        for path in (*(new / name for name in folders_of(written)), new):
            sync_folder(path)
        put_in_place(new, real)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def replace_files(folder: Path, files: Mapping[str, bytes], outdated: Collection[str] = ()) -> None:
    """Write files, given by their relative paths, into a folder, as `new_content` does."""
    with new_content(folder, outdated) as new:
        for name, content in files.items():
            write_synced(new / name, content)


def put_in_place(new: Path, folder: Path) -> None:
    """Let a complete new folder take the place of a folder."""
    if not exists(folder):
        os.rename(new, folder)
    elif not exchange(new, folder):
        ready, old = sibling(folder, READY), sibling(folder, OLD)
        os.rename(new, ready)
        os.rename(folder, old)
        os.rename(ready, folder)
        shutil.rmtree(old, ignore_errors=True)
    sync_folder(folder.parent)


def recover(folder: Path) -> None:
    """Complete or undo a replacement whose process was killed; the caller holds the lock. Raises `OSError`."""
    real = Path(os.path.realpath(folder))
    ready, old = sibling(folder, READY), sibling(folder, OLD)
    if needs_recovery(folder):
        os.rename(ready if exists(ready) else old, real)
        sync_folder(real.parent)
    for leftover in (sibling(folder, NEW), ready, old):
        if exists(leftover):
            shutil.rmtree(leftover)


def needs_recovery(folder: Path) -> bool:
    """Return whether a folder is missing because a replacement was interrupted."""
    return not exists(folder) and (exists(sibling(folder, READY)) or exists(sibling(folder, OLD)))


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one system call; return whether the system has it."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if not renameat2(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE):
        return True
    code = ctypes.get_errno()
    if code in NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(second))


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and flush it to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def link_others(source: Path, target: Path, without: Collection[str]) -> None:
    """Link the files of a folder into another one, or copy them where links are not possible."""
    for path in files_below(source):
        name = path.relative_to(source)
        if name.as_posix() in without:
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target / name, follow_symlinks=False)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            shutil.copy2(path, target / name, follow_symlinks=False)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in and below a folder, and symbolic links to folders, which are not followed."""
    for parent, folders, files in os.walk(folder):
        links = (name for name in folders if os.path.islink(os.path.join(parent, name)))
        yield from (Path(parent, name) for name in (*links, *files))


def folders_of(files: Iterable[str]) -> list[str]:
    """Return the relative paths of the subfolders of files, the deepest first."""
    parents = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    return sorted(parents, key=len, reverse=True)

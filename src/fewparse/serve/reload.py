"""Watch the folders of domains, and read a domain again when its files change."""

import asyncio
import os
from pathlib import Path

from fewparse.serve.domain import ServedDomain
from fewparse.serve.problems import LOGGER, problem_of
from fewparse.serve.service import Service

INTERVAL = 1.0
MAX_FILES = 5_000
IGNORED = (".pyc", ".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal", "~", ".swp")
Signature = tuple[tuple[str, int, int], ...]


def signature(folder: Path) -> Signature:
    """Return the names, times and sizes of the files of a folder."""
    found: list[tuple[str, int, int]] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            if name.endswith(IGNORED) or len(found) >= MAX_FILES:
                continue
            try:
                status = os.stat(os.path.join(root, name))
            except OSError:
                continue
            found.append((os.path.join(root, name), status.st_mtime_ns, status.st_size))
    return tuple(found)


async def watch_domains(service: Service) -> None:
    """Replace domains whose files change; one that cannot be used any more stays as it is, with its error."""
    seen = {domain.name: await asyncio.to_thread(signature, domain.folder) for domain in service.domains.values()}
    while True:
        await asyncio.sleep(INTERVAL)
        for name, domain in list(service.domains.items()):
            found = await asyncio.to_thread(signature, domain.folder)
            if found != seen[name]:
                seen[name] = found
                await reload(service, name, domain)


async def reload(service: Service, name: str, domain: ServedDomain) -> None:
    """Read a domain again."""
    try:
        replaced = await asyncio.to_thread(domain.reloaded)
        if replaced.name != name:
            raise ValueError(f"the name of the domain changed to {replaced.name}")
    except Exception as error:
        message = problem_of(error).message if not isinstance(error, ValueError) else str(error)
        domain.reload_error = f"{message}; the files as they were before are used"
        LOGGER.warning("the domain %s cannot be reloaded: %s", name, domain.reload_error)
    else:
        service.domains[name] = replaced
        LOGGER.warning("the domain %s was reloaded", name)

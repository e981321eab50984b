"""`fewparse new`: create a domain folder from the bundled starter."""

import re
import shutil
from importlib import resources
from pathlib import Path

from fewparse.errors import UsageError


def make_domain(name: str, folder: Path) -> Path:
    """Copy the starter into a new folder under a new name; existing files are never overwritten."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UsageError(f"{name!r} is not a valid name for a domain", "Use letters, digits, - and _.")
    if folder.exists():
        raise UsageError(f"{folder} exists already", "Choose another name, or a place with --in.")
    starter = Path(str(resources.files("fewparse.domains"))) / "starter"
    try:
        shutil.copytree(starter, folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        settings = folder / "domain.toml"
        settings.write_text(
            settings.read_text(encoding="utf-8").replace('"starter"', f'"{name}"'), encoding="utf-8"
        )
    except OSError as error:
        raise UsageError(f"{folder} cannot be created: {error.strerror}") from None
    return folder

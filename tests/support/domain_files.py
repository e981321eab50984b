"""Write domain folders and files of JSON lines."""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from fewparse.domains.load import bundled_domains
from fewparse.domains.trust import trust_folder


def to_json_lines(rows: Iterable[Mapping[str, object]]) -> str:
    """Return the rows as JSON, one per line."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_domain(
    folder: Path, settings: str, examples: Iterable[Mapping[str, object]], files: Mapping[str, str] | None = None
) -> Path:
    """Write settings, examples and other files, by their names, to a folder that may exist already."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"domain.toml": settings, "examples.jsonl": to_json_lines(examples), **(files or {})}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def copy_starter(folder: Path) -> Path:
    """Copy the starter domain without its adapter to a new folder, which is not trusted."""
    ignored = shutil.ignore_patterns("__pycache__", "*.gguf")
    return Path(shutil.copytree(bundled_domains()["starter"], folder, ignore=ignored))


def trusted_starter(folder: Path) -> Path:
    """Copy the starter domain without its adapter to a new folder, whose code the command line may run."""
    return trust_folder(copy_starter(folder))

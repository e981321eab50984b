"""What holds for every dataset."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from fewparse.datasets.registry import Get
from fewparse.errors import DataUnavailable
from support.file_server import serving


def tree(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def assert_fetched_once(
    get: Get, variable: str, files: Mapping[str, bytes], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was fetched from the mirror of an environment variable needs no network again, unless forced."""
    with serving() as server:
        server.files = dict(files)
        monkeypatch.setenv(variable, f"{server.address}/mirror")
        get(data)
    first = tree(data)
    get(data)
    assert tree(data) == first
    with pytest.raises(DataUnavailable):
        get(data, force=True)
    assert tree(data) == first

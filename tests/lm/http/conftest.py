"""Keep tests of the HTTP client away from the user's cache and keys, and shorten the waits between attempts."""

from pathlib import Path

import pytest

from fewparse import retry


@pytest.fixture(autouse=True)
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FEWPARSE_API_KEY", "FEWPARSE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)

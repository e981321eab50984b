"""No test of the HTTP client sees the user's cache or keys, or waits as long as a user would."""

from pathlib import Path

import pytest

from fewparse.lm.http import client


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FEWPARSE_API_KEY", "FEWPARSE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "SHORTEST_WAIT", 0.01)

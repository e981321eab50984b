"""`--reload`: a domain is read again when its files change, and stays as it was if they cannot be used."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fewparse.lm.embedded import EmbeddedModel
from fewparse.serve import reload
from support.serving import Served, running
from support.switch_domain import make_switches


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_switches(tmp_path / "switches")
    return tmp_path / "switches"


@pytest.fixture
def served(embedded: EmbeddedModel, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(reload, "INTERVAL", 0.05)
    with running(embedded, folder, reload=True) as started:
        yield started


def wait_for(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def test_a_changed_grammar_is_used_and_a_broken_one_is_not(served: Served, folder: Path) -> None:
    grammar, tv = folder / "grammar.lark", {"text": "(on tv hall)", "target": "program"}

    def accepted() -> bool:
        return bool(served.post("/v1/check", tv).json()["accepted"])

    def reload_error() -> str | None:
        (domain,) = served.client.get("/v1/domains").json()["domains"]
        error: str | None = domain["reload_error"]
        return error

    assert not accepted()
    original = grammar.read_text()
    grammar.write_text(original.replace('"radio"', '"radio" | "tv"'))
    wait_for(accepted)
    grammar.write_text("start: (")
    error = wait_for(reload_error)
    assert "grammar.lark:1" in error
    assert str(folder) not in error
    assert accepted()
    grammar.write_text(original)
    wait_for(lambda: reload_error() is None and not accepted())

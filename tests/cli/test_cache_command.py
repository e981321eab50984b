"""`fewparse cache`: statistics of the caches, and clearing them."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from fewparse.domains.sql.cache import SqlCache
from fewparse.domains.sql.english import Phrases
from fewparse.lm.response_cache import DEFAULT_LIMIT, ResponseCache
from fewparse.retrieve.similarity_store import SimilarityStore
from support.cli_runner import CommandResult, fewparse
from support.sql_samples import SAMPLES

COMPANY = SAMPLES["company"].database


def filled_cache(folder: Path, responses: int) -> Path:
    """A cache with this many responses of a thousand bytes each."""
    path = folder / "responses.sqlite"
    with closing(ResponseCache(path)) as cache:
        for i in range(responses):
            cache.put(str(i), "x" * 998)
    return path


def test_stats_show_path_number_size_and_times(tmp_path: Path) -> None:
    path = filled_cache(tmp_path, 1200)
    ended = fewparse("cache", "stats", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert (ended.code, ended.err) == (0, "")
    path_line, size_line, times, *others = ended.out.splitlines()
    assert re.fullmatch(rf"{re.escape(str(path))}: \d\.\d MB", path_line)
    assert size_line == "1,200 responses, 1.2 MB of at most 1.1 GB"
    moment = r"20\d\d-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(f"oldest from {moment}, newest from {moment}", times)
    similarities = tmp_path / "similarities.sqlite"
    assert re.fullmatch(rf"{re.escape(str(similarities))}: \d+\.\d kB", others[0])
    assert others[1:] == [
        "0 similarities, 0 bytes of at most 268.4 MB",
        f"{tmp_path / 'sql'}: 0 bytes",
        "0 files of SQL domains",
    ]


def test_stats_as_json(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    path = filled_cache(tmp_path, 3)
    ended = fewparse("cache", "stats", "--json", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)["responses"]
    oldest, newest = (datetime.fromisoformat(found.pop(name)) for name in ("oldest", "newest"))
    assert before <= oldest <= newest <= datetime.now(UTC)
    assert found.pop("file_bytes") >= path.stat().st_size
    assert found == {"path": str(path), "entries": 3, "entry_bytes": 3000, "limit_bytes": DEFAULT_LIMIT}


def test_an_empty_cache_has_no_times(tmp_path: Path) -> None:
    environment = {"FEWPARSE_CACHE": str(tmp_path / "new")}
    ended = fewparse("cache", "stats", env=environment)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1::2] == [
        "0 responses, 0 bytes of at most 1.1 GB",
        "0 similarities, 0 bytes of at most 268.4 MB",
        "0 files of SQL domains",
    ]
    shown = json.loads(fewparse("cache", "stats", "--json", env=environment).out)
    for entries in ("responses", "similarities"):
        assert (shown[entries]["oldest"], shown[entries]["newest"]) == (None, None)
    assert shown["sql"] == {"path": str(tmp_path / "new" / "sql"), "entries": 0, "file_bytes": 0}


def test_clear_shows_what_was_deleted_and_shrinks_the_file(tmp_path: Path) -> None:
    path, environment = filled_cache(tmp_path, 1200), {"FEWPARSE_CACHE": str(tmp_path)}
    before = path.stat().st_size
    none = "0 similarities deleted, 0 bytes\n0 files of SQL domains deleted, 0 bytes\n"
    cleared = fewparse("cache", "clear", env=environment)
    assert cleared == CommandResult(0, f"1,200 responses deleted, 1.2 MB\n{none}", "")
    assert path.stat().st_size < before / 10
    cleared = fewparse("cache", "clear", env=environment)
    assert cleared == CommandResult(0, f"0 responses deleted, 0 bytes\n{none}", "")


def test_similarities_are_shown_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path))
    store = SimilarityStore("some model", ["a", "b"])
    store.put("c", np.array([-1.0, -2.0]))
    environment = {"FEWPARSE_CACHE": str(tmp_path)}
    assert json.loads(fewparse("cache", "stats", "--json", env=environment).out)["similarities"]["entries"] == 1
    assert "1 similarities deleted" in fewparse("cache", "clear", env=environment).out
    assert store.get("c") is None


def test_files_of_sql_domains_are_shown_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path))
    cache = SqlCache(COMPANY, Phrases(COMPANY))
    cache.normal_forms["select 1"] = "SELECT 1"
    cache.store_queries()
    (file,) = (tmp_path / "sql").iterdir()
    shown = json.loads(fewparse("cache", "stats", "--json").out)["sql"]
    assert shown == {"path": str(file.parent), "entries": 1, "file_bytes": file.stat().st_size}
    assert "1 files of SQL domains deleted" in fewparse("cache", "clear").out
    assert not file.exists()


def test_a_damaged_cache_is_replaced_with_a_note(tmp_path: Path) -> None:
    path = filled_cache(tmp_path, 3)
    path.write_bytes(b"no database")
    ended = fewparse("cache", "stats", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert ended.code == 0
    assert "0 responses, 0 bytes" in ended.out
    assert ended.err.startswith(f"note: the response cache {path} is damaged or of another version")
    (aside,) = tmp_path.glob("*.corrupt-*")
    assert str(aside) in ended.err
    assert aside.read_bytes() == b"no database"


def test_a_cache_that_cannot_be_used_is_an_error_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for command in ("stats", "clear"):
        ended = fewparse("cache", command, env={"FEWPARSE_CACHE": str(file)})
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"error: the response cache {file / 'responses.sqlite'} cannot be used")
        assert "To use another folder, set FEWPARSE_CACHE" in ended.err

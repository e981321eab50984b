"""`fewparse cache`: what is kept of remote models, and forgetting it."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from fewparse.lm.cache import LIMIT, ResponseCache
from support.cli_runner import Ended, fewparse


def kept(folder: Path, answers: int) -> Path:
    """A cache in a folder with so many answers of a thousand bytes each."""
    path = folder / "answers.sqlite"
    with closing(ResponseCache(path)) as cache:
        for i in range(answers):
            cache.keep(str(i), "x" * 998)
    return path


def test_stats_tell_place_number_room_and_times(tmp_path: Path) -> None:
    path = kept(tmp_path, 1200)
    ended = fewparse("cache", "stats", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert (ended.code, ended.err) == (0, "")
    place, room, times = ended.out.splitlines()
    assert re.fullmatch(rf"{re.escape(str(path))}: \d\.\d MB", place)
    assert room == "1,200 answers, 1.2 MB of at most 1.1 GB"
    moment = r"20\d\d-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(f"the oldest of {moment}, the newest of {moment}", times)


def test_stats_are_one_json_object_if_wanted(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    path = kept(tmp_path, 3)
    ended = fewparse("cache", "stats", "--json", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    oldest, newest = (datetime.fromisoformat(found.pop(name)) for name in ("oldest", "newest"))
    assert before <= oldest <= newest <= datetime.now(UTC)
    assert found.pop("file_bytes") >= path.stat().st_size
    assert found == {"path": str(path), "entries": 3, "answer_bytes": 3000, "limit": LIMIT}


def test_of_an_empty_cache_there_are_no_times(tmp_path: Path) -> None:
    environment = {"FEWPARSE_CACHE": str(tmp_path / "new")}
    ended = fewparse("cache", "stats", env=environment)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1:] == ["0 answers, 0 bytes of at most 1.1 GB"]
    found = json.loads(fewparse("cache", "stats", "--json", env=environment).out)
    assert (found["oldest"], found["newest"]) == (None, None)


def test_clear_tells_what_went_and_the_file_shrinks(tmp_path: Path) -> None:
    path, environment = kept(tmp_path, 1200), {"FEWPARSE_CACHE": str(tmp_path)}
    before = path.stat().st_size
    assert fewparse("cache", "clear", env=environment) == Ended(0, "1,200 answers removed, 1.2 MB\n", "")
    assert path.stat().st_size < before / 10
    assert fewparse("cache", "clear", env=environment) == Ended(0, "0 answers removed, 0 bytes\n", "")


def test_a_damaged_cache_is_set_aside_and_that_is_said(tmp_path: Path) -> None:
    path = kept(tmp_path, 3)
    path.write_bytes(b"no database")
    ended = fewparse("cache", "stats", env={"FEWPARSE_CACHE": str(tmp_path)})
    assert ended.code == 0
    assert "0 answers, 0 bytes" in ended.out
    assert ended.err.startswith(f"note: the answer cache {path} is damaged or of another version")
    (aside,) = tmp_path.glob("*.corrupt-*")
    assert str(aside) in ended.err
    assert aside.read_bytes() == b"no database"


def test_a_cache_that_cannot_be_used_is_an_error_with_a_next_step(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for command in ("stats", "clear"):
        ended = fewparse("cache", command, env={"FEWPARSE_CACHE": str(file)})
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"error: the answer cache {file / 'answers.sqlite'} cannot be used")
        assert "FEWPARSE_CACHE can name another folder" in ended.err

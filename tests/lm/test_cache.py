"""The answer cache: a dictionary that survives, shared by threads and processes, and never in the way."""

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.lm.cache import ResponseCache, answers_path, cache_key

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = st.sampled_from(["a", "b", "c", "é", ""])


def silent(message: str) -> None:
    raise AssertionError(f"nothing is to be said, but: {message}")


@contextmanager
def opened(path: Path, limit: int = 1 << 30, tell: Callable[[str], None] = silent) -> Iterator[ResponseCache]:
    with closing(ResponseCache(path, limit, tell, timeout=10)) as cache:
        yield cache


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "answers.sqlite"


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own, which talks through pipes."""
    begin = "import os, sys, time\nfrom pathlib import Path\nfrom fewparse.lm.cache import ResponseCache\n"
    command = [sys.executable, "-W", "error", "-c", begin + script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    """What a process has said when it ended well."""
    out, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (0, "")
    return out


# What is found is what was kept.


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["find", "keep", "reopen", "clear"]), KEYS, JSON), max_size=12))
def test_it_is_a_dictionary_that_survives(actions: list[tuple[str, str, Any]]) -> None:
    oracle: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        cache = ResponseCache(Path(folder) / "answers.sqlite", tell=silent)
        for action, key, value in actions:
            if action == "keep":
                cache.keep(key, value)
                oracle[key] = value
            elif action == "reopen":
                cache.close()
                cache = ResponseCache(cache.path, tell=silent)
            elif action == "clear":
                assert cache.clear() == len(oracle)
                oracle.clear()
            found = cache.find(key)
            assert repr(found) == repr(oracle.get(key))  # which tells 1 from 1.0 and from True
        statistics = cache.statistics()
        assert statistics.entries == len(oracle)
        assert statistics.answer_bytes == sum(len(json.dumps(v, separators=(",", ":"))) for v in oracle.values())
        cache.close()


def test_text_that_is_no_unicode_is_kept_as_well(path: Path) -> None:
    with opened(path) as cache:
        cache.keep("half a pair", {"text": "\ud800"})
        assert cache.find("half a pair") == {"text": "\ud800"}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_say_is_not_kept_and_not_taken_for_an_older_answer(path: Path, number: float) -> None:
    with opened(path) as cache:
        cache.keep("key", {"logprobs": [-0.5, number]})
        assert cache.find("key") is None
        assert cache.statistics().entries == 0


def test_statistics_count_hits_and_misses_of_this_process_and_tell_times(path: Path) -> None:
    before = datetime.now(UTC)
    with opened(path, limit=5000) as cache:
        empty = cache.statistics()
        assert (empty.entries, empty.oldest, empty.newest) == (0, None, None)
        cache.keep("a", [1])
        between = datetime.now(UTC)
        cache.keep("b", "é")
        for key in ("a", "b", "c", "a"):
            cache.find(key)
        found = cache.statistics()
    assert (found.entries, found.answer_bytes, found.limit) == (2, len('[1]"\\u00e9"'), 5000)
    assert (found.hits, found.misses) == (3, 1)
    assert found.oldest is not None
    assert found.newest is not None
    assert before <= found.oldest <= between <= found.newest <= datetime.now(UTC)
    assert found.file_bytes >= path.stat().st_size
    with opened(path) as again:
        assert (again.statistics().hits, again.statistics().entries) == (0, 2)


def test_a_closed_cache_finds_and_keeps_nothing(path: Path) -> None:
    with opened(path) as cache:
        cache.keep("a", 1)
        assert cache.working
    assert not cache.working
    cache.keep("b", 2)
    assert cache.find("a") is None
    with opened(path) as again:
        assert (again.find("a"), again.find("b")) == (1, None)


def test_answers_are_kept_in_the_folder_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path))
    assert answers_path() == tmp_path / "answers.sqlite"


# Keys.


@given(st.dictionaries(st.text(), JSON, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_a_request_does_not_matter(request: dict[str, Any], random: Any) -> None:
    shuffled = list(request.items())
    random.shuffle(shuffled)
    assert cache_key({"body": dict(shuffled)}) == cache_key({"body": request})


@given(JSON, JSON)
def test_two_requests_share_a_key_only_if_they_are_the_same(one: Any, other: Any) -> None:
    same = ordered(one) == ordered(other)
    assert (cache_key({"body": one}) == cache_key({"body": other})) == same


def ordered(value: Any) -> str:
    """A value as Python writes it, with its objects in order."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {ordered(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(ordered, value)) + "]"
    return repr(value)


def test_every_part_of_a_request_counts() -> None:
    request = {"server": "http://a", "path": "/v1", "body": {"prompt": "p", "seed": 1}, "sample": 0}
    others = [
        {**request, "server": "http://b"},
        {**request, "path": "/v2"},
        {**request, "body": {"prompt": "p", "seed": 2}},
        {**request, "sample": 1},
    ]
    assert len({cache_key(r) for r in (request, *others)}) == 5


# Limits.


@contextmanager
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Time that passes only when told."""
    now = [1_000_000.0]

    def passes(seconds: float) -> None:
        now[0] += seconds

    with monkeypatch.context() as patched:
        patched.setattr("fewparse.lm.response_cache.time.time", lambda: now[0])
        yield passes


def test_the_least_recently_used_go_down_to_nine_tenths(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with clock(monkeypatch) as passes, opened(path, limit=1000) as cache:
        for i in range(10):
            cache.keep(str(i), "x" * 98)
            passes(100)
        assert cache.statistics().answer_bytes == 1000
        assert cache.find("0") == cache.find("2") == "x" * 98
        passes(100)
        cache.keep("new", "x" * 98)
        assert cache.statistics().answer_bytes == 900
        assert [key for key in (*map(str, range(10)), "new") if cache.find(key) is None] == ["1", "3"]


def test_a_use_is_written_at_most_once_a_minute(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with clock(monkeypatch) as passes, opened(path) as cache:
        cache.keep("a", 1)
        for seconds, used in ((30, 1_000_000.0), (29, 1_000_000.0), (2, 1_000_061.0), (59, 1_000_061.0)):
            passes(seconds)
            cache.find("a")
            with closing(sqlite3.connect(path)) as own:
                assert own.execute("SELECT used FROM answers").fetchall() == [(used,)]


@pytest.mark.parametrize("size", [901, 999, 1000])
def test_one_answer_may_take_all_the_room(path: Path, size: int) -> None:
    with opened(path, limit=1000) as cache:
        cache.keep("small", "x" * 100)
        cache.keep("large", "x" * (size - 2))
        assert cache.find("large") is not None
        assert cache.find("small") is None


def test_an_answer_larger_than_the_limit_is_not_kept_and_drives_nothing_out(path: Path) -> None:
    with opened(path, limit=1000) as cache:
        cache.keep("small", "x")
        cache.keep("large", "x" * 999)
        assert cache.find("large") is None
        assert cache.find("small") == "x"


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 120)), max_size=30), st.integers(10, 200))
def test_the_limit_holds_and_the_last_answer_within_it_is_always_found(
    kept: list[tuple[int, int]], limit: int
) -> None:
    with TemporaryDirectory() as folder, opened(Path(folder) / "answers.sqlite", limit) as cache:
        for key, size in kept:
            cache.keep(str(key), "x" * size)
            if size + 2 <= limit:
                assert cache.find(str(key)) == "x" * size
            statistics = cache.statistics()
            assert statistics.answer_bytes <= limit
        left = [found for key in range(9) if (found := cache.find(str(key))) is not None]
        assert sum(len(found) + 2 for found in left) == cache.statistics().answer_bytes
        assert len(left) == cache.statistics().entries


def test_clearing_shrinks_the_file(path: Path) -> None:
    with opened(path) as cache:
        for i in range(500):
            cache.keep(str(i), "x" * 5000)
        before = cache.statistics().file_bytes
        assert before > 2_500_000
        assert cache.clear() == 500
        after = cache.statistics()
        assert (after.entries, after.answer_bytes) == (0, 0)
        assert after.file_bytes < 100_000
        cache.keep("a", 1)
        assert cache.find("a") == 1


# Threads and processes.


def test_threads_share_one_cache(path: Path) -> None:
    wrong: list[object] = []
    with opened(path) as cache:

        def work(own: int) -> None:
            for i in range(100):
                cache.keep(f"{own} {i}", [own, i])
                cache.keep("shared", i)
                if cache.find(f"{own} {i}") != [own, i] or cache.find("shared") is None:
                    wrong.append((own, i))

        threads = [threading.Thread(target=work, args=(own,)) for own in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statistics = cache.statistics()
    assert wrong == []
    assert (statistics.entries, statistics.hits, statistics.misses) == (801, 1600, 0)


KEEP_AT_A_SIGNAL = """
own, *files = sys.argv[1:]
for file in files:
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    cache = ResponseCache(Path(file))
    for i in range(20):
        cache.keep(f"{own} {i}", [int(own), i])
        assert cache.find(f"{own} {i}") == [int(own), i]
    cache.close()
"""


def test_processes_that_begin_a_new_file_at_the_same_moment_share_it(path: Path) -> None:
    files = [path.with_name(f"{i}.sqlite") for i in range(10)]
    together([python(KEEP_AT_A_SIGNAL, own, *files) for own in range(5)], len(files))
    for file in files:
        with opened(file) as cache:
            assert [cache.find(f"{own} {i}") for own in range(5) for i in range(20)] == [
                [own, i] for own in range(5) for i in range(20)
            ]
            assert cache.statistics().entries == 100
    assert list(path.parent.glob("*.corrupt-*")) == []


def together(processes: list[subprocess.Popen[str]], times: int) -> None:
    """Let processes that wait for a line go on at the same moment, so many times, and end well."""
    for _ in range(times):
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
    for process in processes:
        ended(process)


KEEP_AND_DIE = """
import signal
cache = ResponseCache(Path(sys.argv[1]))
for i in range(20):
    cache.keep(str(i), {"answer": i})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_kept_survives_a_killed_process(path: Path) -> None:
    process = python(KEEP_AND_DIE, path)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    with opened(path) as cache:
        assert [cache.find(str(i)) for i in range(20)] == [{"answer": i} for i in range(20)]


def test_a_process_killed_while_it_keeps_leaves_whole_answers_and_right_totals(path: Path) -> None:
    script = """
cache = ResponseCache(Path(sys.argv[1]), limit=200_000)
for i in range(100_000):
    cache.keep(str(i % 50), [i] * 1000)
    if i == 100:
        sys.stdout.write("busy\\n")
        sys.stdout.flush()
"""
    process = python(script, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    process.kill()
    process.communicate(timeout=60)
    with opened(path) as cache:
        found = [value for i in range(50) if (value := cache.find(str(i))) is not None]
        statistics = cache.statistics()
    assert found
    assert all(len(value) == 1000 and len(set(value)) == 1 for value in found)
    assert len(found) == statistics.entries
    assert sum(len(json.dumps(v, separators=(",", ":"))) for v in found) == statistics.answer_bytes


# A file that is damaged.


def filled(path: Path) -> None:
    with opened(path) as cache:
        for i in range(200):
            cache.keep(str(i), str(i) * 300)


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE answers (question TEXT)")


def change(statement: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as own:
            own.execute(statement)

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"these are no answers\n" * 100),
    "a short text": lambda path: path.write_bytes(b"???"),
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "the header alone": lambda path: os.truncate(path, 100),
    "zeros behind the header": lambda path: overwrite(path, 100, bytes(path.stat().st_size - 100)),
    "tables with broken names": lambda path: overwrite(path, path.read_bytes().index(b"answers ("), b"\x80" * 9),
    "another program": of_another_program,
    "another version": change("PRAGMA user_version = 2"),
    "an older version without a number": change("PRAGMA user_version = 0"),
    "a table is missing": change("DROP TABLE answers"),
    "the total is missing": change("DELETE FROM total"),
    "the total is no number": change("UPDATE total SET bytes = 'many'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_set_aside_and_a_new_one_begun_which_is_said_once(path: Path, damage: str) -> None:
    filled(path)
    DAMAGES[damage](path)
    bad = path.read_bytes()
    told: list[str] = []
    with opened(path, tell=told.append) as cache:
        cache.keep("new", [1])
        assert cache.find("new") == [1]
        assert cache.find("7") is None
        assert cache.statistics().entries == 1
        assert cache.working
    (message,) = told
    (aside,) = (file for file in path.parent.glob("*.corrupt-*") if not file.name.endswith("-wal"))
    assert str(path) in message
    assert str(aside) in message
    assert "can be deleted" in message
    assert aside.read_bytes() == bad
    with opened(path) as again:
        assert again.find("new") == [1]


def test_damage_that_comes_while_the_file_is_open_is_found_as_well(path: Path) -> None:
    filled(path)
    told: list[str] = []
    with opened(path, tell=told.append) as cache:
        assert cache.find("0") == "0" * 300
        overwrite(path, 4096, b"\xff" * (path.stat().st_size - 4096))
        for i in range(200):
            assert cache.find(str(i)) in (None, str(i) * 300)
        cache.keep("new", 1)
        assert cache.find("new") == 1
        assert cache.working
    assert len(told) == 1
    assert len(list(path.parent.glob("*.corrupt-*"))) == 1


def test_a_cache_that_others_have_open_can_be_set_aside(path: Path) -> None:
    filled(path)
    told: list[str] = []
    with opened(path, tell=told.append) as first, opened(path, tell=told.append) as second:
        assert first.find("0") == second.find("0") == "0" * 300
        overwrite(path, 4096, b"\xff" * (path.stat().st_size - 4096))
        first.keep("of the first", 1)
        second.keep("of the second", 2)
        for cache in (first, second):
            assert (cache.find("of the first"), cache.find("of the second")) == (1, 2)
    assert len(told) == 1
    assert "damaged" in told[0]
    with opened(path) as third:
        assert (third.find("of the first"), third.find("of the second")) == (1, 2)


def test_processes_that_find_a_damaged_file_at_the_same_moment_lose_nothing_new(path: Path) -> None:
    path.parent.mkdir()
    files = [path.with_name(f"{i}.sqlite") for i in range(10)]
    for file in files:
        file.write_bytes(b"no database")
    script = KEEP_AT_A_SIGNAL.replace("Path(file))", "Path(file), tell=lambda message: None)")
    together([python(script, own, *files) for own in range(4)], len(files))
    for file in files:
        with opened(file) as cache:
            assert cache.statistics().entries == 80
    assert len(list(path.parent.glob("*.corrupt-*"))) == len(files)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=64)), min_size=1))
def test_whatever_is_written_over_the_file_nothing_is_raised_and_no_answer_is_wrong(
    wounds: list[tuple[float, bytes]],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "answers.sqlite"
        with opened(path, limit=4000) as cache:
            for i in range(20):
                cache.keep(str(i), [i] * 50)
        for place, content in wounds:
            overwrite(path, int(place * path.stat().st_size), content)
        with opened(path, limit=4000, tell=lambda _message: None) as cache:
            for i in range(20):
                assert cache.find(str(i)) in (None, [i] * 50)
            for i in range(40):
                cache.keep(str(i), [-i] * 50)
                assert cache.find(str(i)) in (None, [-i] * 50)


@pytest.mark.parametrize("text", ["'{\"answer\": '", "''", "CAST(x'ff22' AS TEXT)", "'2'"])
def test_an_answer_that_has_changed_or_is_no_json_any_more_is_a_miss_and_dropped(path: Path, text: str) -> None:
    with opened(path) as cache:
        cache.keep("a", 1)
        cache.keep("b", 2)
        change(f"UPDATE answers SET value = {text} WHERE key = 'a'")(path)
        assert cache.find("a") is None
        assert cache.find("b") == 2
        statistics = cache.statistics()
        assert (statistics.entries, statistics.hits, statistics.misses) == (1, 1, 1)


# A file that cannot be used.


def assert_given_up(path: Path, why: str, timeout: float = 0.2) -> None:
    """Looking and keeping go on without the file, and that is said once."""
    told: list[str] = []
    with closing(ResponseCache(path, tell=told.append, timeout=timeout)) as cache:
        for i in range(3):
            cache.keep(str(i), i)
            assert cache.find(str(i)) is None
        assert not cache.working
        assert (cache.statistics().entries, cache.statistics().misses) == (0, 3)
        assert cache.clear() == 0
    (message,) = told
    assert f"{path} cannot be used" in message
    assert why in message
    assert "without it" in message
    assert "FEWPARSE_CACHE" in message


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert_given_up(tmp_path / "file" / "answers.sqlite", "exists")
    assert_given_up(tmp_path / "file" / "below" / "answers.sqlite", "ot a directory")


def test_a_folder_in_place_of_the_file(path: Path) -> None:
    path.mkdir(parents=True)
    assert_given_up(path, "unable to open database file")
    assert path.is_dir()


HOLD = """
import sqlite3
own = sqlite3.connect(sys.argv[1], isolation_level=None)
own.execute(f"PRAGMA locking_mode = {sys.argv[2]}")
own.execute("BEGIN EXCLUSIVE")
own.execute("UPDATE total SET entries = entries")
sys.stdout.write("locked\\n")
sys.stdout.flush()
sys.stdin.readline()
own.execute("ROLLBACK")
own.close()
"""


@pytest.mark.parametrize("mode", ["NORMAL", "EXCLUSIVE"])
def test_a_file_that_another_process_has_locked_for_too_long(path: Path, mode: str) -> None:
    with opened(path) as cache:
        cache.keep("before", 1)
    holder = python(HOLD, path, mode)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    try:
        assert_given_up(path, "database is locked")
    finally:
        holder.communicate("go\n", timeout=60)
    with opened(path) as again:
        assert (again.find("before"), again.find("0")) == (1, None)


def test_a_lock_that_is_let_go_in_time_is_waited_for(path: Path) -> None:
    with opened(path) as cache:
        cache.keep("before", 1)
        holder = python(HOLD, path, "NORMAL")
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        release = threading.Timer(0.5, lambda: holder.communicate("go\n", timeout=60))
        release.start()
        cache.keep("after", 2)
        release.join()
        assert (cache.find("before"), cache.find("after")) == (1, 2)


USE = """
told = []
cache = ResponseCache(Path(sys.argv[1]), tell=told.append)
{trouble}
for i in range(100):
    cache.keep(f"new {{i}}", "x" * 10_000)
    cache.find(f"new {{i}}")
assert not cache.working
cache.close()
(message,) = told
sys.stdout.write(message)
"""


def test_a_folder_that_can_only_be_read() -> None:
    # Not below the folder of this test, which another user must not enter.
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "answers.sqlite"
        filled(path)
        folder.chmod(0o555)
        path.chmod(0o444)
        message = ended(python(USE.format(trouble="if os.getuid() == 0: os.setuid(65534)"), path))
        assert f"{path} cannot be used" in message
        folder.chmod(0o755)
        with opened(path) as cache:
            assert cache.find("7") == "7" * 300


def test_a_disk_without_room(path: Path) -> None:
    filled(path)
    limit = path.stat().st_size + 50_000
    trouble = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    message = ended(python(USE.format(trouble=trouble), path))
    assert f"{path} cannot be used" in message
    with opened(path) as cache:
        assert [cache.find(str(i)) for i in range(200)] == [str(i) * 300 for i in range(200)]


def test_by_default_a_warning_says_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        closing(ResponseCache(tmp_path / "file" / "answers.sqlite")) as cache,
        pytest.warns(match="cannot be used"),
    ):
        assert cache.find("a") is None

"""The response cache: a persistent dictionary, shared by threads and processes, that never raises."""

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

from fewparse.lm.response_cache import ResponseCache, cache_key, response_cache_path

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = st.sampled_from(["a", "b", "c", "é", ""])


def no_warning(message: str) -> None:
    raise AssertionError(f"unexpected warning: {message}")


@contextmanager
def opened(
    path: Path, limit: int = 1 << 30, on_warning: Callable[[str], None] = no_warning
) -> Iterator[ResponseCache]:
    with closing(ResponseCache(path, limit, on_warning, timeout=60)) as cache:
        yield cache


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "responses.sqlite"


def python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process that runs a script, with pipes."""
    imports = (
        "import os, sys, time\nfrom pathlib import Path\nfrom fewparse.lm.response_cache import ResponseCache\n"
    )
    command = [sys.executable, "-W", "error", "-c", imports + script, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for a process to succeed and return its output."""
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    return out


# Reading and writing.


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["get", "put", "reopen", "clear"]), KEYS, JSON), max_size=12))
def test_it_behaves_like_a_persistent_dictionary(actions: list[tuple[str, str, Any]]) -> None:
    oracle: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        cache = ResponseCache(Path(folder) / "responses.sqlite", on_warning=no_warning)
        for action, key, value in actions:
            if action == "put":
                cache.put(key, value)
                oracle[key] = value
            elif action == "reopen":
                cache.close()
                cache = ResponseCache(cache.path, on_warning=no_warning)
            elif action == "clear":
                assert cache.clear() == len(oracle)
                oracle.clear()
            found = cache.get(key)
            assert repr(found) == repr(oracle.get(key))  # repr distinguishes 1, 1.0 and True
        statistics = cache.statistics()
        assert statistics.entries == len(oracle)
        assert statistics.entry_bytes == sum(len(json.dumps(v, separators=(",", ":"))) for v in oracle.values())
        cache.close()


def test_unpaired_surrogates_are_stored(path: Path) -> None:
    with opened(path) as cache:
        cache.put("surrogate", {"text": "\ud800"})
        assert cache.get("surrogate") == {"text": "\ud800"}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_values_that_json_cannot_represent_are_not_stored(path: Path, number: float) -> None:
    with opened(path) as cache:
        cache.put("key", {"logprobs": [-0.5, number]})
        assert cache.get("key") is None
        assert cache.statistics().entries == 0


def test_statistics_have_hits_and_misses_of_this_process_and_times(path: Path) -> None:
    before = datetime.now(UTC)
    with opened(path, limit=5000) as cache:
        empty = cache.statistics()
        assert (empty.entries, empty.oldest, empty.newest) == (0, None, None)
        cache.put("a", [1])
        between = datetime.now(UTC)
        cache.put("b", "é")
        for key in ("a", "b", "c", "a"):
            cache.get(key)
        found = cache.statistics()
    assert (found.entries, found.entry_bytes, found.limit) == (2, len('[1]"\\u00e9"'), 5000)
    assert (found.hits, found.misses) == (3, 1)
    assert found.oldest is not None
    assert found.newest is not None
    assert before <= found.oldest <= between <= found.newest <= datetime.now(UTC)
    assert found.file_bytes >= path.stat().st_size
    with opened(path) as again:
        assert (again.statistics().hits, again.statistics().entries) == (0, 2)


def test_a_closed_cache_returns_and_stores_nothing(path: Path) -> None:
    with opened(path) as cache:
        cache.put("a", 1)
        assert cache.working
    assert not cache.working
    cache.put("b", 2)
    assert cache.get("a") is None
    with opened(path) as again:
        assert (again.get("a"), again.get("b")) == (1, None)


def test_the_environment_sets_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_CACHE", str(tmp_path))
    assert response_cache_path() == tmp_path / "responses.sqlite"


# Keys.


@given(st.dictionaries(st.text(), JSON, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_keys_in_a_request_does_not_matter(request: dict[str, Any], random: Any) -> None:
    shuffled = list(request.items())
    random.shuffle(shuffled)
    assert cache_key({"body": dict(shuffled)}) == cache_key({"body": request})


@given(JSON, JSON)
def test_requests_have_the_same_key_only_if_they_are_equal(one: Any, other: Any) -> None:
    same = ordered(one) == ordered(other)
    assert (cache_key({"body": one}) == cache_key({"body": other})) == same


def ordered(value: Any) -> str:
    """The repr of a value, with sorted keys."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {ordered(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(ordered, value)) + "]"
    return repr(value)


def test_every_part_of_a_request_affects_the_key() -> None:
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
    """Replace the clock by one that advances only by calls of the function yielded."""
    now = [1_000_000.0]

    def advance(seconds: float) -> None:
        now[0] += seconds

    with monkeypatch.context() as patched:
        patched.setattr("fewparse.lm.response_store.time.time", lambda: now[0])
        yield advance


def test_the_least_recently_used_are_evicted_down_to_nine_tenths(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clock(monkeypatch) as advance, opened(path, limit=1000) as cache:
        for i in range(10):
            cache.put(str(i), "x" * 98)
            advance(100)
        assert cache.statistics().entry_bytes == 1000
        assert cache.get("0") == cache.get("2") == "x" * 98
        advance(100)
        cache.put("new", "x" * 98)
        assert cache.statistics().entry_bytes == 900
        assert [key for key in (*map(str, range(10)), "new") if cache.get(key) is None] == ["1", "3"]


def test_a_use_is_recorded_at_most_once_a_minute(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with clock(monkeypatch) as advance, opened(path) as cache:
        cache.put("a", 1)
        for seconds, used in ((30, 1_000_000.0), (29, 1_000_000.0), (2, 1_000_061.0), (59, 1_000_061.0)):
            advance(seconds)
            cache.get("a")
            with closing(sqlite3.connect(path)) as own:
                assert own.execute("SELECT last_used FROM responses").fetchall() == [(used,)]


@pytest.mark.parametrize("size", [901, 999, 1000])
def test_one_response_may_use_the_whole_limit(path: Path, size: int) -> None:
    with opened(path, limit=1000) as cache:
        cache.put("small", "x" * 100)
        cache.put("large", "x" * (size - 2))
        assert cache.get("large") is not None
        assert cache.get("small") is None


def test_a_response_larger_than_the_limit_is_not_stored_and_evicts_nothing(path: Path) -> None:
    with opened(path, limit=1000) as cache:
        cache.put("small", "x")
        cache.put("large", "x" * 999)
        assert cache.get("large") is None
        assert cache.get("small") == "x"


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 120)), max_size=30), st.integers(10, 200))
def test_the_limit_holds_and_the_latest_response_is_always_found(
    stored: list[tuple[int, int]], limit: int
) -> None:
    with TemporaryDirectory() as folder, opened(Path(folder) / "responses.sqlite", limit) as cache:
        for key, size in stored:
            cache.put(str(key), "x" * size)
            if size + 2 <= limit:
                assert cache.get(str(key)) == "x" * size
            statistics = cache.statistics()
            assert statistics.entry_bytes <= limit
        left = [found for key in range(9) if (found := cache.get(str(key))) is not None]
        assert sum(len(found) + 2 for found in left) == cache.statistics().entry_bytes
        assert len(left) == cache.statistics().entries


def test_clearing_shrinks_the_file(path: Path) -> None:
    with opened(path) as cache:
        for i in range(500):
            cache.put(str(i), "x" * 5000)
        before = cache.statistics().file_bytes
        assert before > 2_500_000
        assert cache.clear() == 500
        after = cache.statistics()
        assert (after.entries, after.entry_bytes) == (0, 0)
        assert after.file_bytes < 100_000
        cache.put("a", 1)
        assert cache.get("a") == 1


# Threads and processes.


def test_threads_share_one_cache(path: Path) -> None:
    wrong: list[object] = []
    with opened(path) as cache:

        def work(own: int) -> None:
            for i in range(100):
                cache.put(f"{own} {i}", [own, i])
                cache.put("shared", i)
                if cache.get(f"{own} {i}") != [own, i] or cache.get("shared") is None:
                    wrong.append((own, i))

        threads = [threading.Thread(target=work, args=(own,)) for own in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statistics = cache.statistics()
    assert wrong == []
    assert (statistics.entries, statistics.hits, statistics.misses) == (801, 1600, 0)


PUT_AT_A_SIGNAL = """
own, *files = sys.argv[1:]
for file in files:
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    cache = ResponseCache(Path(file))
    for i in range(20):
        cache.put(f"{own} {i}", [int(own), i])
        assert cache.get(f"{own} {i}") == [int(own), i]
    cache.close()
"""


def test_processes_that_create_a_file_at_the_same_time_share_it(path: Path) -> None:
    files = [path.with_name(f"{i}.sqlite") for i in range(10)]
    together([python(PUT_AT_A_SIGNAL, own, *files) for own in range(5)], len(files))
    for file in files:
        with opened(file) as cache:
            assert [cache.get(f"{own} {i}") for own in range(5) for i in range(20)] == [
                [own, i] for own in range(5) for i in range(20)
            ]
            assert cache.statistics().entries == 100
    assert list(path.parent.glob("*.corrupt-*")) == []


def together(processes: list[subprocess.Popen[str]], times: int) -> None:
    """Let processes that wait for a line continue at the same time, this many times, and wait for their end."""
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


PUT_AND_DIE = """
import signal
cache = ResponseCache(Path(sys.argv[1]))
for i in range(20):
    cache.put(str(i), {"response": i})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_stored_responses_survive_a_killed_process(path: Path) -> None:
    process = python(PUT_AND_DIE, path)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    with opened(path) as cache:
        assert [cache.get(str(i)) for i in range(20)] == [{"response": i} for i in range(20)]


def test_a_process_killed_while_writing_leaves_whole_responses_and_correct_totals(path: Path) -> None:
    script = """
cache = ResponseCache(Path(sys.argv[1]), limit=200_000)
for i in range(100_000):
    cache.put(str(i % 50), [i] * 1000)
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
        found = [value for i in range(50) if (value := cache.get(str(i))) is not None]
        statistics = cache.statistics()
    assert found
    assert all(len(value) == 1000 and len(set(value)) == 1 for value in found)
    assert len(found) == statistics.entries
    assert sum(len(json.dumps(v, separators=(",", ":"))) for v in found) == statistics.entry_bytes


# Damaged files.


def filled(path: Path) -> None:
    with opened(path) as cache:
        for i in range(200):
            cache.put(str(i), str(i) * 300)


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE responses (question TEXT)")


def change(statement: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as own:
            own.execute(statement)

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"these are no responses\n" * 100),
    "a short text": lambda path: path.write_bytes(b"???"),
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "the header alone": lambda path: os.truncate(path, 100),
    "zeros behind the header": lambda path: overwrite(path, 100, bytes(path.stat().st_size - 100)),
    "tables with broken names": lambda path: overwrite(
        path, path.read_bytes().index(b"responses ("), b"\x80" * 11
    ),
    "another program": of_another_program,
    "another version": change("PRAGMA user_version = 3"),
    "an older version without a number": change("PRAGMA user_version = 0"),
    "a table is missing": change("DROP TABLE responses"),
    "the total is missing": change("DELETE FROM totals"),
    "the total is no number": change("UPDATE totals SET bytes = 'many'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_replaced_with_one_warning(path: Path, damage: str) -> None:
    filled(path)
    DAMAGES[damage](path)
    bad = path.read_bytes()
    messages: list[str] = []
    with opened(path, on_warning=messages.append) as cache:
        cache.put("new", [1])
        assert cache.get("new") == [1]
        assert cache.get("7") is None
        assert cache.statistics().entries == 1
        assert cache.working
    (message,) = messages
    (aside,) = (file for file in path.parent.glob("*.corrupt-*") if not file.name.endswith("-wal"))
    assert str(path) in message
    assert str(aside) in message
    assert "can be deleted" in message
    assert aside.read_bytes() == bad
    with opened(path) as again:
        assert again.get("new") == [1]


def test_damage_to_an_open_file_is_detected(path: Path) -> None:
    filled(path)
    messages: list[str] = []
    with opened(path, on_warning=messages.append) as cache:
        assert cache.get("0") == "0" * 300
        overwrite(path, 4096, b"\xff" * (path.stat().st_size - 4096))
        for i in range(200):
            assert cache.get(str(i)) in (None, str(i) * 300)
        cache.put("new", 1)
        assert cache.get("new") == 1
        assert cache.working
    assert len(messages) == 1
    assert len(list(path.parent.glob("*.corrupt-*"))) == 1


def test_a_damaged_file_that_others_have_open_is_replaced(path: Path) -> None:
    filled(path)
    messages: list[str] = []
    with opened(path, on_warning=messages.append) as first, opened(path, on_warning=messages.append) as second:
        assert first.get("0") == second.get("0") == "0" * 300
        overwrite(path, 4096, b"\xff" * (path.stat().st_size - 4096))
        first.put("of the first", 1)
        second.put("of the second", 2)
        for cache in (first, second):
            assert (cache.get("of the first"), cache.get("of the second")) == (1, 2)
    assert len(messages) == 1
    assert "damaged" in messages[0]
    with opened(path) as third:
        assert (third.get("of the first"), third.get("of the second")) == (1, 2)


def test_processes_that_replace_a_damaged_file_at_the_same_time_lose_nothing(path: Path) -> None:
    path.parent.mkdir()
    files = [path.with_name(f"{i}.sqlite") for i in range(10)]
    for file in files:
        file.write_bytes(b"no database")
    script = PUT_AT_A_SIGNAL.replace("Path(file))", "Path(file), on_warning=lambda message: None)")
    together([python(script, own, *files) for own in range(4)], len(files))
    for file in files:
        with opened(file) as cache:
            assert cache.statistics().entries == 80
    assert len(list(path.parent.glob("*.corrupt-*"))) == len(files)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=64)), min_size=1))
def test_random_damage_never_raises_and_never_gives_a_wrong_response(
    damages: list[tuple[float, bytes]],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "responses.sqlite"
        with opened(path, limit=4000) as cache:
            for i in range(20):
                cache.put(str(i), [i] * 50)
        for place, content in damages:
            overwrite(path, int(place * path.stat().st_size), content)
        with opened(path, limit=4000, on_warning=lambda _message: None) as cache:
            for i in range(20):
                assert cache.get(str(i)) in (None, [i] * 50)
            for i in range(40):
                cache.put(str(i), [-i] * 50)
                assert cache.get(str(i)) in (None, [-i] * 50)


@pytest.mark.parametrize("text", ["'{\"response\": '", "''", "CAST(x'ff22' AS TEXT)", "'2'"])
def test_a_response_with_a_wrong_checksum_is_a_miss_and_deleted(path: Path, text: str) -> None:
    with opened(path) as cache:
        cache.put("a", 1)
        cache.put("b", 2)
        change(f"UPDATE responses SET value = {text} WHERE key = 'a'")(path)
        assert cache.get("a") is None
        assert cache.get("b") == 2
        statistics = cache.statistics()
        assert (statistics.entries, statistics.hits, statistics.misses) == (1, 1, 1)


# Files that cannot be used.


def assert_disabled(path: Path, why: str, timeout: float = 0.2) -> None:
    """Check that reads and writes do nothing, with one warning."""
    messages: list[str] = []
    with closing(ResponseCache(path, on_warning=messages.append, timeout=timeout)) as cache:
        for i in range(3):
            cache.put(str(i), i)
            assert cache.get(str(i)) is None
        assert not cache.working
        assert (cache.statistics().entries, cache.statistics().misses) == (0, 3)
        assert cache.clear() == 0
    (message,) = messages
    assert f"{path} cannot be used" in message
    assert why in message
    assert "without it" in message
    assert "FEWPARSE_CACHE" in message


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert_disabled(tmp_path / "file" / "responses.sqlite", "exists")
    assert_disabled(tmp_path / "file" / "below" / "responses.sqlite", "ot a directory")


def test_a_folder_in_place_of_the_file(path: Path) -> None:
    path.mkdir(parents=True)
    assert_disabled(path, "unable to open database file")
    assert path.is_dir()


HOLD = """
import sqlite3
own = sqlite3.connect(sys.argv[1], isolation_level=None)
own.execute(f"PRAGMA locking_mode = {sys.argv[2]}")
own.execute("BEGIN EXCLUSIVE")
own.execute("UPDATE totals SET entries = entries")
sys.stdout.write("locked\\n")
sys.stdout.flush()
sys.stdin.readline()
own.execute("ROLLBACK")
own.close()
"""


@pytest.mark.parametrize("mode", ["NORMAL", "EXCLUSIVE"])
def test_a_file_that_another_process_locks_for_too_long(path: Path, mode: str) -> None:
    with opened(path) as cache:
        cache.put("before", 1)
    holder = python(HOLD, path, mode)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    try:
        assert_disabled(path, "database is locked")
    finally:
        holder.communicate("go\n", timeout=60)
    with opened(path) as again:
        assert (again.get("before"), again.get("0")) == (1, None)


def test_a_lock_that_is_released_in_time_is_waited_for(path: Path) -> None:
    with opened(path) as cache:
        cache.put("before", 1)
        holder = python(HOLD, path, "NORMAL")
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        release = threading.Timer(0.5, lambda: holder.communicate("go\n", timeout=60))
        release.start()
        cache.put("after", 2)
        release.join()
        assert (cache.get("before"), cache.get("after")) == (1, 2)


USE = """
messages = []
cache = ResponseCache(Path(sys.argv[1]), on_warning=messages.append)
{trouble}
for i in range(100):
    cache.put(f"new {{i}}", "x" * 10_000)
    cache.get(f"new {{i}}")
assert not cache.working
cache.close()
(message,) = messages
sys.stdout.write(message)
"""


def test_a_read_only_folder() -> None:
    # Not in tmp_path, which another user must not enter.
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "responses.sqlite"
        filled(path)
        folder.chmod(0o555)
        path.chmod(0o444)
        message = ended(python(USE.format(trouble="if os.getuid() == 0: os.setuid(65534)"), path))
        assert f"{path} cannot be used" in message
        folder.chmod(0o755)
        with opened(path) as cache:
            assert cache.get("7") == "7" * 300


def test_a_full_disk(path: Path) -> None:
    filled(path)
    limit = path.stat().st_size + 50_000
    trouble = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    message = ended(python(USE.format(trouble=trouble), path))
    assert f"{path} cannot be used" in message
    with opened(path) as cache:
        assert [cache.get(str(i)) for i in range(200)] == [str(i) * 300 for i in range(200)]


def test_the_default_is_a_python_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        closing(ResponseCache(tmp_path / "file" / "responses.sqlite")) as cache,
        pytest.warns(match="cannot be used"),
    ):
        assert cache.get("a") is None

"""Odd files on the command line end in a message, never in a traceback, and never hang."""

import gzip
import os
from pathlib import Path

import pytest

from fewparse.domains.load import package
from support.cli_runner import fewparse
from support.file_server import original_name

STARTER = package() / "starter"


def odd_file(folder: Path, kind: str) -> str:
    """Make something that is not a readable file, and return its path."""
    path = folder / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "huge":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "folder":
        path.mkdir()
    else:
        return PATHS.get(kind, kind)
    return str(path)


PATHS = {"NUL": "a\0b", "long": "x" * 5000, "long name": "x" * 300, "home": "~nobody-at-all/x"}
KINDS = ["pipe", "loop", "huge", "folder", *PATHS, "/dev/zero", "/proc/self/mem", "\udcff"]
COMMANDS = [
    *(["grammar", "stats", "{}"], ["grammar", "check", "{}", "--dialect", "lark"], ["grammar", "induce", "{}"]),
    *(["check", "{}"], ["execute", "{}", "x"], ["data", "import", "overnight", "{}"]),
    *(["data", "list", "--data", "{}"], ["new", "x", "--in", "{}/y"]),
    *(["parse", "starter", "x", "--grammar", "{}"], ["parse", "starter", "x", "--prompt", "{}.toml"]),
    ["grammar", "tree", "starter", "(on lamp kitchen)", "--svg", "{}/x"],
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_odd_path_is_an_error_message(
    command: list[str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = odd_file(tmp_path, kind)
    ended = fewparse(*(part.replace("{}", odd) for part in command))
    assert ended.code in (0, 1, 2), ended.err


def domain_with(folder: Path, name: str, content: str | None = None, pipe: bool = False) -> str:
    """Make a domain in which one file is odd."""
    assert fewparse("new", "odd", "--in", str(folder / "odd")).code == 0
    path = folder / "odd" / name
    if pipe:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    else:
        path.write_text(content or "")
    return str(folder / "odd")


@pytest.mark.parametrize("name", ["domain.toml", "examples.jsonl", "test.jsonl", "grammar.lark"])
def test_a_pipe_in_a_domain_folder_is_an_error_message(name: str, tmp_path: Path) -> None:
    ended = fewparse("check", domain_with(tmp_path, name, pipe=True))
    assert (ended.code, "not a regular file" in ended.err) == (1, True), ended.err


TABLES = {
    "deep arrays": "a = " + "[" * 3000 + "]" * 3000,
    "deep tables": "a." * 3000 + "a = 1",
    "deep inline tables": "a = " + "{a=" * 3000 + "1" + "}" * 3000,
    "a long number": "pool = " + "9" * 5000,
    "a number of 4,000 digits": "name = " + "9" * 4000,
    "a long hexadecimal number": "name = 0x" + "f" * 9000,
    "a long float": "temperature = 1e" + "9" * 4000,
    "NUL": 'name = "a\\u0000"',
    "too large": "#" * 2_000_000,
}


@pytest.mark.parametrize("source", TABLES.values(), ids=TABLES)
def test_an_odd_domain_toml_is_an_error_message(source: str, tmp_path: Path) -> None:
    settings = (STARTER / "domain.toml").read_text()
    ended = fewparse("check", domain_with(tmp_path, "domain.toml", f"{source}\n{settings}"))
    assert ended.code == 1, ended.err
    assert "domain.toml" in ended.err


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000, '"\\ud800"', "NaN", '"' + "x" * 100])
def test_an_odd_example_is_an_error_message(value: str, tmp_path: Path) -> None:
    line = f'{{"utterance": {value}, "program": "x"}}'
    ended = fewparse("check", domain_with(tmp_path, "examples.jsonl", line))
    assert ended.code == 1
    assert "examples.jsonl:1" in ended.err


def test_a_gzip_file_that_unpacks_to_gigabytes_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWPARSE_MAX_FILE_BYTES", "50000000")
    source = tmp_path / "source"
    source.mkdir()
    for part in ("train", "test"):
        content = gzip.compress(b" " * 1_000_000) * 3000
        (source / f"{original_name('recipes', part).split('.')[0]}.{part}.jsonl.gz").write_bytes(content)
    ended = fewparse("data", "import", "overnight", str(source), "--data", str(tmp_path / "data"))
    assert (ended.code, "unpacked larger than 50,000,000 bytes" in ended.err) == (1, True), ended.err
    assert not (tmp_path / "data").exists()


def test_standard_input_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWPARSE_MAX_FILE_BYTES", "1000")
    ended = fewparse("grammar", "induce", "-", stdin="(f x)\n" * 1000)
    assert (ended.code, "standard input is larger than 1,000 bytes" in ended.err) == (2, True), ended.err

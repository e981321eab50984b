"""The store of trusted folders: by resolved path, safe against damage, other users and concurrent commands."""

import json
import os
import threading
from pathlib import Path

import pytest

from fewparse.domains import trust
from fewparse.domains.trust import distrust_folder, is_trusted, trust_folder, trusted_folders
from fewparse.errors import UsageError
from support.domain_files import copy_starter


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEWPARSE_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_starter(tmp_path / "home")


def record(config: Path) -> Path:
    (path,) = (config / "trusted").iterdir()
    return path


def test_a_folder_is_trusted_until_it_is_removed(folder: Path) -> None:
    assert not is_trusted(folder)
    assert trust_folder(folder) == folder
    assert is_trusted(folder)
    assert trusted_folders(pytest.fail) == [folder]
    assert distrust_folder(folder)
    assert not is_trusted(folder)
    assert not distrust_folder(folder)
    assert trusted_folders(pytest.fail) == []


def test_trust_survives_changes_of_the_files_but_not_a_move(folder: Path, tmp_path: Path) -> None:
    trust_folder(folder)
    (folder / "executor.py").write_text("def execute(program): return 1\n")
    assert is_trusted(folder)
    folder.rename(tmp_path / "moved")
    assert not is_trusted(tmp_path / "moved")
    assert not is_trusted(folder)


def test_a_folder_is_the_same_by_every_spelling_of_its_path(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(folder)
    trust_folder(tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    for spelling in ("home", "home/", "./home/../home", "link", str(folder)):
        assert is_trusted(Path(spelling))
    assert not is_trusted(folder / "sub")
    assert not is_trusted(tmp_path)


def test_a_link_that_is_changed_later_is_not_trusted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    trust_folder(tmp_path / "link")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(copy_starter(tmp_path / "other"))
    assert not is_trusted(tmp_path / "link")


def test_only_a_domain_folder_can_be_trusted(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", Path("/")):
        with pytest.raises(UsageError, match="is not a domain folder"):
            trust_folder(path)


DAMAGED = {
    "empty": b"",
    "not JSON": b"\xff\x00{",
    "nested": b"[" * 50_000,
    "a list": b"[]",
    "no owner": b'{"folder": "/"}',
    "another folder": b'{"folder": "/", "owner": 0}',
    "wrong types": b'{"folder": 3, "owner": "root"}',
    "true": b'{"folder": "/", "owner": true}',
    "too large": b" " * 200_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_means_that_the_folder_is_not_trusted(content: bytes, folder: Path, config: Path) -> None:
    trust_folder(folder)
    record(config).write_bytes(content)
    warnings: list[str] = []
    assert not is_trusted(folder, warnings.append)
    assert trusted_folders(warnings.append) == []
    assert len(warnings) == 2
    assert all(str(record(config)) in warning for warning in warnings)
    trust_folder(folder)
    assert is_trusted(folder, pytest.fail)


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_a_record_that_is_not_a_file_means_that_the_folder_is_not_trusted(
    kind: str, folder: Path, config: Path
) -> None:
    trust_folder(folder)
    path = record(config)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    warnings: list[str] = []
    assert not is_trusted(folder, warnings.append)
    assert "not a regular file" in warnings[0]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_every_user_can_change_is_not_trusted(folder: Path) -> None:
    trust_folder(folder)
    warnings: list[str] = []
    for path, before in ((folder, 0o755), (folder / "executor.py", 0o644)):
        path.chmod(0o777)
        assert not is_trusted(folder, warnings.append)
        with pytest.raises(UsageError, match="every user of this machine can change its files"):
            trust_folder(folder)
        path.chmod(before)
    assert len(warnings) == 2
    assert is_trusted(folder, pytest.fail)


def test_a_folder_that_now_belongs_to_another_user_is_not_trusted(folder: Path, config: Path) -> None:
    trust_folder(folder)
    content = json.loads(record(config).read_text())
    record(config).write_text(json.dumps({**content, "owner": content["owner"] + 1}))
    warnings: list[str] = []
    assert not is_trusted(folder, warnings.append)
    assert "it belongs to another user than before" in warnings[0]


@pytest.mark.skipif(os.name != "posix", reason="users of POSIX")
def test_a_record_of_another_user_is_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_folder(folder)
    monkeypatch.setattr(trust, "users", lambda: (12345,))
    warnings: list[str] = []
    assert not is_trusted(folder, warnings.append)
    assert "belongs to another user" in warnings[0]


def test_the_store_may_be_impossible_to_write(folder: Path, config: Path) -> None:
    config.write_text("a file")
    with pytest.raises(UsageError, match="cannot be written") as raised:
        trust_folder(folder)
    assert "FEWPARSE_CONFIG" in (raised.value.hint or "")
    assert not is_trusted(folder)
    assert trusted_folders(pytest.fail) == []


def test_folders_can_be_trusted_at_the_same_time(tmp_path: Path) -> None:
    folders = [copy_starter(tmp_path / f"home{i}") for i in range(12)]
    threads = [threading.Thread(target=trust_folder, args=(folder,)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trusted_folders(pytest.fail) == sorted(folders)


@pytest.mark.parametrize("name", ["two\nlines", "caf\udce9", "x" * 200, "a'b c$(d)"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    folder = copy_starter(tmp_path / name)
    trust_folder(folder)
    assert is_trusted(folder, pytest.fail)
    assert trusted_folders(pytest.fail) == [folder]

"""Installed packages add retrievers and domains by entry points, seen by a real process of the command line."""

import json
import os
import shutil
from importlib import resources
from pathlib import Path

import pytest

from support.cli_runner import HALL, CommandResult, fewparse_process

RETRIEVER = """
class Backwards:
    def __init__(self, pool):
        self.count = len(pool.utterances)

    def rank(self, utterance, usage):
        return list(reversed(range(self.count)))
"""
ENTRY_POINTS = """
[fewparse.retrievers]
backwards = my_package.backwards:Backwards
broken = my_package.no_such_module:Missing
bm25 = my_package.backwards:Backwards

[fewparse.domains]
my-home = my_package.home
calendar = my_package.home
no-package = my_package.backwards:Backwards
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package, its domain folder and its entry points, to be put on the path."""
    folder = tmp_path_factory.mktemp("site-packages")
    package = folder / "my_package"
    shutil.copytree(Path(str(resources.files("fewparse.domains"))) / "starter", package / "home")
    (package / "__init__.py").write_text("")
    (package / "home" / "__init__.py").write_text("")
    (package / "backwards.py").write_text(RETRIEVER)
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def run(installed: Path, *arguments: str) -> CommandResult:
    path = os.pathsep.join(filter(None, [str(installed), os.environ.get("PYTHONPATH")]))
    return fewparse_process(*arguments, env={"PYTHONPATH": path})


def test_a_domain_and_a_retriever_are_used_by_name(installed: Path) -> None:
    options = ("--retriever", "backwards", "--examples", "2", "--decoder", "greedy", "--explain")
    ended = run(installed, "parse", "my-home", HALL, *options)
    assert ended.code == 0
    lines = (installed / "my_package" / "home" / "examples.jsonl").read_text().splitlines()
    last, before = (json.loads(line)["utterance"] for line in (lines[-1], lines[-2]))
    assert f"2 examples by backwards, best first\n  {last}" in ended.out.replace(" ─", "").replace("─", "")
    assert before in ended.out


def test_one_that_cannot_be_used_is_named_and_skipped(installed: Path) -> None:
    ended = run(installed, "parse", "my-home", HALL, "--retriever", "broken")
    assert ended.code == 2
    assert "warning: the retriever `broken` of my-package is skipped: it cannot be imported" in ended.err
    assert "warning: the retriever `bm25` of my-package is skipped: its name is already taken" in ended.err
    assert "warning: the domain `calendar` of my-package is skipped: its name is already taken" in ended.err
    assert "warning: the domain `no-package` is skipped: its entry point is not a package" in ended.err
    assert "error: unknown retriever 'broken'" in ended.err


def test_known_domains_include_installed_ones(installed: Path) -> None:
    ended = run(installed, "check", "my-hom", "--model", "none")
    assert ended.code == 2
    assert "Did you mean my-home?" in ended.err

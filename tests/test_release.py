"""The files of a release agree: version, changelog, citation, Python versions, workflows."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import fewparse

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_newest_release_of_the_changelog_and_the_citation_are_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    citation = read_yaml(ROOT / "CITATION.cff")
    assert releases[0] == (fewparse.__version__, str(citation["date-released"]))
    assert citation["version"] == fewparse.__version__
    assert releases == sorted(releases, key=lambda release: release[1], reverse=True)


def test_the_workflows_try_the_python_versions_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    jobs = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    tried = [jobs["all"]["steps"][1]["with"]["python-version"]]
    tried += jobs["versions"]["strategy"]["matrix"]["python-version"]
    assert tried == declared
    assert project["requires-python"] == f">={declared[0]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_commands_of_workflows_exist(path: Path) -> None:
    content = read_yaml(path)
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for job in content["jobs"].values():
        for command in (step["run"] for step in job["steps"] if "run" in step):
            for target in re.findall(r"\bmake ([a-z-]+)", command):
                assert target in targets
            for script in re.findall(r"(?<!\S)(\.ci/\w+|src/\S+\.py)", command):
                assert (ROOT / script).exists()

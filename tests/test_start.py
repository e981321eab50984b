"""What is imported at the start: heavy packages are imported when they are used."""

import json
import subprocess
import sys

import pytest

from fewparse.cli.commands import TABLE, load_command

LIGHT = {"fewparse", "typer", "rich", "markdown_it", "mdurl", "pygments", "annotated_doc", "attr", "shellingham"}
"""Packages that `fewparse --help` may import: typer prints the help with rich."""

SHOW = """
import json, sys
before = set(sys.modules)
sys.argv = ["fewparse", *json.loads(sys.argv[1])]
try:
    {code}
finally:
    print(json.dumps(sorted(set(sys.modules) - before)), file=sys.__stderr__)
"""


def imported(code: str, *arguments: str) -> set[str]:
    """Return the modules, except those of the standard library, that some code imports in a new process."""
    command = [sys.executable, "-c", SHOW.format(code=code), json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    modules = set(json.loads(done.stderr.splitlines()[-1]))
    return {name for name in modules if name.split(".")[0] not in sys.stdlib_module_names}


def test_the_package_imports_nothing_but_its_errors() -> None:
    assert imported("import fewparse") == {"fewparse", "fewparse.errors"}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_no_command_and_no_heavy_package(option: str) -> None:
    modules = imported("from fewparse.cli.main import run; run()", option)
    assert {name for name in modules if name.startswith("fewparse.")} == {
        *("fewparse.cli", "fewparse.cli.commands", "fewparse.cli.console", "fewparse.cli.main"),
        *("fewparse.errors", "fewparse.text"),
    }
    assert {name.split(".")[0] for name in modules} <= LIGHT


def test_a_parse_imports_nothing_that_only_other_commands_need() -> None:
    modules = imported("import fewparse.cli.parse")
    unused = {"httpx2", "jsonschema", "matplotlib", "pandas", "sklearn", "sqlglot", "starlette", "torch"}
    assert not modules & unused


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_commands_has_the_first_paragraph_of_their_help(name: str) -> None:
    shown = load_command(name).help.split("\n\n")[0]
    assert " ".join(shown.split()) == TABLE[name].help

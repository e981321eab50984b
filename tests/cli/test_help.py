"""`--help` and `--version`."""

import pytest
import typer.main

import fewparse as package
from fewparse.cli.main import app
from fewparse.search.decoder import DECODERS
from support.cli_runner import CommandResult, fewparse

COMMANDS = [
    *(
        "parse",
        "eval",
        "reproduce",
        "check",
        "experiment",
        "report",
        "tune",
        "execute",
        "new",
        "trust",
        "models",
        "models check",
        "models list",
        "models path",
        "models probe",
        "models pull",
        "grammar",
    ),
    *("grammar accepts", "grammar check", "grammar stats", "grammar translate", "grammar render"),
    "grammar induce",
    *("grammar export", "grammar tree", "data", "data get", "data import", "data list", "data path"),
    *("cache", "cache stats", "cache clear"),
    *("calibrate", "optimize", "feedback", "serve"),
    *("feedback list", "feedback show", "feedback export", "feedback forget", "feedback review"),
]


def test_version_is_that_of_the_package() -> None:
    assert fewparse("--version") == CommandResult(0, f"fewparse {package.__version__}\n", "")


def test_the_list_of_commands_tested_here_is_complete() -> None:
    names = []
    for name, command in vars(typer.main.get_command(app))["commands"].items():
        names += [name, *(f"{name} {inner}" for inner in vars(command).get("commands", {}))]
    assert sorted(names) == sorted(COMMANDS)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help(command: str) -> None:
    ended = fewparse(*command.split(), "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"Usage: fewparse {command}".strip() in ended.out
    assert "--help" in ended.out


def test_without_a_command_help_is_shown() -> None:
    ended = fewparse()
    shown = ended.out + ended.err
    assert all(command in shown for command in ("parse", "execute", "new", "models"))


def test_the_help_of_parse_names_every_choice() -> None:
    ended = fewparse("parse", "--help")
    assert " | ".join(DECODERS) in ended.out
    assert "gguf:PATH" in ended.out

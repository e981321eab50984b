"""The table of commands; the module of a command is imported when the command is used.

The help of `fewparse` itself comes from this table, so that it imports none of them.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Entry(NamedTuple):
    """Where a command is defined, as `module:name` in this package, and the first paragraph of its help."""

    place: str
    help: str


TABLE = {
    "parse": Entry(
        "parse:parse", "Parse one utterance, or every line of standard input, into a well-formed program."
    ),
    "eval": Entry(
        "evaluate:evaluation",
        "Evaluate a domain on held-out examples: accuracy, cost and speed, "
        "compared with baselines without a model.",
    ),
    "experiment": Entry(
        "experiment:experiment",
        "Run a grid of models, domains and options; an interrupted run continues with the same command.",
    ),
    "report": Entry(
        "report:report",
        "Show the results of an experiment, finished or not, "
        "and write report.md, plots and a page for the browser.",
    ),
    "reproduce": Entry(
        "reproduce:reproduce",
        "Repeat a table of the paper with any models, and print it beside the figures of the paper.",
    ),
    "serve": Entry(
        "serve:serve",
        "Serve domains: an HTTP API, a page to try and correct them in, and tools for agents (MCP).",
    ),
    "check": Entry(
        "domain:check",
        "Check a domain: its grammar against its examples, round trips, ambiguity, copy spans, leaks, vocabulary.",
    ),
    "tune": Entry(
        "tune:tune",
        "Tune the embedded model on a domain's examples; `parse` and `eval` then use the resulting adapter.",
    ),
    "optimize": Entry(
        "optimize:optimize_command",
        "Choose the settings of a domain on its training examples, and write them into domain.toml.",
    ),
    "calibrate": Entry(
        "calibrate:calibrate",
        "Calibrate the confidence of a domain: parse examples that the model has not learned, "
        "and fit on the results.",
    ),
    "execute": Entry(
        "domain:execute",
        "Execute the programs on standard input: one denotation per line, `error: ...` for one that fails.",
    ),
    "new": Entry(
        "domain:new",
        "Create a domain folder: of a database, of the functions of an API, or a small language to start from.",
    ),
    "trust": Entry(
        "trust:trust", "Trust a domain folder: from now on, the commands run its executor and its normal form."
    ),
    "feedback": Entry("feedback:app", "The log of parses and of what users said about them."),
    "grammar": Entry("grammar:app", "Inspect, translate with, sample, induce or export a grammar."),
    "models": Entry("models:app", "List and download models; check model files; find out what a server supports."),
    "data": Entry("data:app", "Download, import and list benchmark datasets."),
    "cache": Entry(
        "cache:app",
        "Inspect or clear the caches: responses of models, similarities of utterances, files of SQL domains.",
    ),
}


def load_command(name: str) -> Any:
    """Import a command and return it as a command or group of the parser of the command line."""
    module, _, attribute = TABLE[name].place.partition(":")
    found = getattr(import_module(f"fewparse.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        group = typer.main.get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(found)
    return typer.main.get_command(alone)


class Commands(Mapping[str, Any]):
    """The commands by name, each loaded when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in TABLE and name not in self._loaded:
            self._loaded[name] = load_command(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(TABLE)

    def __len__(self) -> int:
        return len(TABLE)


class CommandGroup(TyperGroup):
    """The command `fewparse`: its help shows the table, and the command that is used is loaded."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(TABLE)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what the help shows of a command."""
        return TyperCommand(cmd_name, help=TABLE[cmd_name].help) if cmd_name in TABLE else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Load the command that the arguments name."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and name and self.commands[name], rest

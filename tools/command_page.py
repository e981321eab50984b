"""The reference of the command line, from its parser."""

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from fewparse.cli.main import app
from pages import GENERATED, range_text, table


def command_page() -> str:
    """Return the page of all commands."""
    lines = [
        "# Commands",
        "",
        GENERATED,
        "",
        "All commands with their options, as `fewparse COMMAND --help` shows them. "
        "An option without a default has the value of the [domain](domain-toml.md), if it is one of its settings.",
        "",
    ]
    root: Any = typer.main.get_command(app)
    for name, command in [("fewparse", root), *subcommands("fewparse", root)]:
        lines += [f"## {name}", "", paragraphs(command.help or ""), ""]
        lines += ["```text", usage(name, command), "```", ""]
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        if arguments:
            cells = ([f"`{p.name.upper()}`", sentence(p.help)] for p in arguments)
            lines += [*table(("argument", ""), cells), ""]
        types = get_type_hints(inspect.unwrap(command.callback)) if command.callback else {}
        for panel, options in panels(command).items():
            cells = ([names_of(p), value_of(p, types), default_of(p), sentence(p.help)] for p in options)
            lines += [*table((panel.lower(), "value", "default", ""), cells), ""]
    return "\n".join(lines).rstrip() + "\n"


def subcommands(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group by their full names; a group is followed by its commands."""
    for name, command in group.commands.items():
        yield f"{prefix} {name}", command
        if hasattr(command, "commands"):
            yield from subcommands(f"{prefix} {name}", command)


def paragraphs(text: str) -> str:
    """Return a docstring with one line per paragraph."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def usage(name: str, command: Any) -> str:
    """Return the line that shows how a command is used."""
    parts = [name, "[OPTIONS]"]
    parts += ["COMMAND [ARGS]..."] if hasattr(command, "commands") else []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            shown = parameter.name.upper() + ("..." if parameter.nargs != 1 else "")
            parts.append(shown if parameter.required else f"[{shown}]")
    return " ".join(parts)


def panels(command: Any) -> dict[str, list[Any]]:
    """Return the options of a command in the panels of its help."""
    found: dict[str, list[Any]] = {}
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.hidden:
            found.setdefault(getattr(parameter, "rich_help_panel", None) or "Options", []).append(parameter)
    return found


def names_of(option: Any) -> str:
    """Return the names of an option."""
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def value_of(option: Any, types: Mapping[str, Any]) -> str:
    """Return what an option takes: nothing, or a kind of value with its range."""
    if option.is_flag:
        return ""
    declared = types.get(option.name, str)
    kinds = [kind for kind in get_args(declared) if kind is not type(None)] or [declared]
    shown = {int: "integer", float: "number", Path: "path"}.get(kinds[0], "text")
    if option.metavar and option.metavar != "TEXT":
        shown = f"`{option.metavar}`"
    return shown + range_text(option.min, option.max) + (", repeatable" if option.multiple else "")


def default_of(option: Any) -> str:
    """Return the default of an option, nothing if it has none."""
    value = option.default
    if value is True:
        return f"`{option.opts[0]}`"
    return f"`{value}`" if isinstance(value, str | int | float) and value not in (False, "") else ""


def sentence(text: str | None) -> str:
    """Return a help text on one line, with words in angle brackets and braces as they are."""
    return re.sub(r"(?<!`)(<[^>]+>|\{[^}]+\})", r"`\1`", " ".join((text or "").split()))

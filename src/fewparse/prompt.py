"""Prompt templates: data files that are filled with examples and the utterance."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from fewparse.errors import DomainError, UnknownName
from fewparse.files import parse_toml

FIELDS = re.compile(r"\{(utterance|output|context)\}")
DESCRIPTION = "{description}"
PLACEHOLDERS = {
    "preamble": (),
    "example": ("utterance", "output"),
    "query": ("utterance",),
    "context": ("context",),
}
"""The placeholders that each text of a template must contain."""
MAX_PLACEHOLDERS = 20


class Part(NamedTuple):
    """A piece of a prompt; only text of the template may be markup (chat markers), never a user's text."""

    text: str
    markup: bool


class Message(NamedTuple):
    """A message of a chat."""

    role: str
    content: str


@dataclass(frozen=True)
class Prompt:
    """The text that a language model continues.

    `messages` is the same prompt as a chat, for models with a chat interface only; their responses come without
    the `lead` with which outputs start. `lines_dropped` counts the lines of the domain's description that did not
    fit into the model's context.
    """

    parts: tuple[Part, ...]
    messages: tuple[Message, ...] = ()
    lead: str = ""
    lines_dropped: int = 0

    @property
    def text(self) -> str:
        """The whole prompt as text, markup included."""
        return "".join(part.text for part in self.parts)


class Pair(NamedTuple):
    """An example of a prompt."""

    utterance: str
    output: str
    context: str = ""


@dataclass(frozen=True)
class Template:
    """The layout of a prompt.

    `lead` is the text between the end of the prompt and the output (usually a space): a prompt never ends in a
    space, so the output starts with it. `stop` ends an output. `context` is the text that replaces {context} in an
    example or a query; empty if there is no context. `instruction` is the system message for chat models, by
    default the preamble. `description`, which is no key of the file, is the domain's; it replaces {description} in
    the preamble and the instruction.
    """

    name: str
    preamble: str
    example: str
    query: str
    lead: str = ""
    stop: str = "\n"
    markup: tuple[str, ...] = ()
    context: str = "{context}"
    instruction: str = ""
    description: str = ""

    def with_lead(self, output: str) -> str:
        """Return an output as the model generates it: after the lead."""
        return self.lead + output

    def without_lead(self, text: str) -> str:
        """Return the output in a text that the model generated."""
        return text.removeprefix(self.lead)

    @property
    def has_context(self) -> bool:
        """Whether the query contains {context}."""
        return "{context}" in self.query

    @property
    def has_description(self) -> bool:
        """Whether the preamble or the instruction contains {description}."""
        return DESCRIPTION in self.preamble + self.instruction

    def with_description(self, description: str) -> "Template":
        """Return the template with a text for {description}."""
        return replace(self, description=description)

    def render(self, examples: Sequence[Pair], utterance: str, context: str = "") -> Prompt:
        """Return the prompt for an utterance after these examples."""
        before, *after = self._around_description(self.preamble)
        parts = self._split_markup(before)
        for piece in after:
            parts += [Part(self.description, False), *self._split_markup(piece)]
        for example in examples:
            fields = {"utterance": example.utterance, "output": self.lead + example.output}
            parts += self._fill(self.example, fields, example.context)
        parts += self._fill(self.query, {"utterance": utterance}, context)
        return Prompt(merge(parts), self._messages(examples, utterance, context), self.lead)

    def _messages(self, examples: Sequence[Pair], utterance: str, context: str) -> tuple[Message, ...]:
        """Return the prompt as chat messages: examples are pairs of user and assistant messages."""
        own = self.instruction or ("" if self.markup else self.preamble.strip())
        instruction = self.description.join(self._around_description(own))
        messages = [Message("system", instruction)] if instruction else []
        for example in examples:
            messages += [
                self._user_message(example.utterance, example.context),
                Message("assistant", without_line_breaks(example.output)),
            ]
        return (*messages, self._user_message(utterance, context))

    def _around_description(self, text: str) -> list[str]:
        """Split a text at {description}; if there is no description, its line is left out."""
        return (text if self.description else text.replace(f"{DESCRIPTION}\n", "")).split(DESCRIPTION)

    def _user_message(self, utterance: str, context: str) -> Message:
        prefix = (
            self.context.replace("{context}", without_line_breaks(context))
            if self.has_context and context.strip()
            else ""
        )
        return Message("user", prefix + without_line_breaks(utterance))

    def _fill(self, text: str, fields: dict[str, str], context: str) -> list[Part]:
        filled = text.replace("{context}", self.context if context.strip() else "")
        parts = []
        for i, piece in enumerate(FIELDS.split(filled)):
            if i % 2:
                parts.append(Part(without_line_breaks({**fields, "context": context}[piece]), False))
            else:
                parts += self._split_markup(piece)
        return parts

    def _split_markup(self, text: str) -> list[Part]:
        if not self.markup:
            return [Part(text, False)]
        pattern = "(" + "|".join(map(re.escape, self.markup)) + ")"
        return [Part(piece, bool(i % 2)) for i, piece in enumerate(re.split(pattern, text))]


def without_line_breaks(text: str) -> str:
    """Replace line breaks by spaces: they would end the example."""
    return re.sub(r"[\r\n]+", " ", text)


def merge(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Join adjacent parts of one kind, so that tokens may span them."""
    merged: list[Part] = []
    for part in parts:
        if not part.text:
            continue
        if merged and merged[-1].markup == part.markup:
            merged[-1] = Part(merged[-1].text + part.text, part.markup)
        else:
            merged.append(part)
    return tuple(merged)


def bundled_names() -> list[str]:
    """Return the names of the bundled templates."""
    folder = resources.files("fewparse") / "prompts"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


@cache
def bundled_template(name: str) -> Template:
    """Return a bundled template by name."""
    if name not in bundled_names():
        raise UnknownName("prompt", name, bundled_names(), "A domain folder can also have its own template file.")
    file = resources.files("fewparse") / "prompts" / f"{name}.toml"
    return read_template(file.read_text(encoding="utf-8"), Path(f"{name}.toml"))


def read_template(source: str, path: Path) -> Template:
    """Read a template file; a mistake is a `DomainError` with its line."""
    table = {"context": "{context}", **parse_toml(source, path)}
    known = set(Template.__dataclass_fields__) - {"name", "description"}
    for key, value in table.items():
        line = next((n for n, text in enumerate(source.splitlines(), 1) if text.startswith(key)), None)
        if key not in known:
            raise DomainError(f"unknown key {key!r}; expected one of {', '.join(sorted(known))}", path, line)
        if key == "markup":
            if not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
                raise DomainError("`markup` must be a list of strings", path, line)
        elif not isinstance(value, str):
            raise DomainError(f"`{key}` must be a string", path, line)
    for key, fields in PLACEHOLDERS.items():
        if key not in table:
            raise DomainError(f"`{key}` is missing", path)
        for field in fields:
            if f"{{{field}}}" not in table[key]:
                raise DomainError(f"`{key}` does not contain {{{field}}}", path)
    for key in ("query", "context"):
        if "{output}" in table[key]:
            raise DomainError(f"`{key}` contains {{output}}, which is only for `example`", path)
    for key in ("example", "query", "context"):
        if DESCRIPTION in table[key]:
            raise DomainError(f"`{key}` contains {DESCRIPTION}, which is only for `preamble`, `instruction`", path)
    for key in PLACEHOLDERS:
        if len(FIELDS.findall(table[key])) > MAX_PLACEHOLDERS:
            raise DomainError(f"`{key}` contains more than {MAX_PLACEHOLDERS} placeholders", path)
    if "stop" in table and not table["stop"]:
        raise DomainError("`stop` is empty: it is the text that ends an output, usually a line break", path)
    if table["query"].endswith(" "):
        raise DomainError("`query` ends in a space: put the space into `lead`, with which the output starts", path)
    return Template(name=path.stem, **(table | {"markup": tuple(table.get("markup", ()))}))

"""Write the prompt: templates are data, the utterance and the examples fill them in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from fewparse.errors import DomainError, UnknownName
from fewparse.files import parse_toml

FIELDS = re.compile(r"\{(utterance|output|context)\}")
MENTIONED = {"preamble": (), "example": ("utterance", "output"), "query": ("utterance",), "context": ("context",)}
"""What the texts of a template must mention."""


class Part(NamedTuple):
    """A piece of a prompt; only the template's own text may be markup (chat markers), never a user's."""

    text: str
    markup: bool


class Message(NamedTuple):
    """A turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True)
class Prompt:
    """What a language model is asked to continue.

    `messages` is the same as a conversation, for models that only converse; they answer without the `lead` with
    which outputs begin.
    """

    parts: tuple[Part, ...]
    messages: tuple[Message, ...] = ()
    lead: str = ""

    @property
    def text(self) -> str:
        """The whole prompt, markup shown as it is written."""
        return "".join(part.text for part in self.parts)


class Pair(NamedTuple):
    """An example as it stands in a prompt."""

    utterance: str
    output: str
    context: str = ""


@dataclass(frozen=True)
class Template:
    """The layout of a prompt.

    `lead` is what the layout puts between the prompt's end and the output (a space, mostly): a prompt never
    ends in a space, so the output begins with it. `stop` ends an output. `context` is how {context} reads in an
    example or a query; where nothing was said before, that is nothing. `instruction` is what a model that only
    converses is told first; left out, it is the preamble.
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

    @property
    def has_context(self) -> bool:
        """Whether a query has a place for what was said before it."""
        return "{context}" in self.query

    def render(self, examples: Sequence[Pair], utterance: str, context: str = "") -> Prompt:
        """The prompt for an utterance behind these examples."""
        parts = self._split_markup(self.preamble)
        for example in examples:
            fields = {"utterance": example.utterance, "output": self.lead + example.output}
            parts += self._fill(self.example, fields, example.context)
        parts += self._fill(self.query, {"utterance": utterance}, context)
        return Prompt(merge(parts), self._conversation(examples, utterance, context), self.lead)

    def _conversation(self, examples: Sequence[Pair], utterance: str, context: str) -> tuple[Message, ...]:
        """The examples as turns: what is said, and what should be answered."""
        instruction = self.instruction or ("" if self.markup else self.preamble.strip())
        turns = [Message("system", instruction)] if instruction else []
        for example in examples:
            turns += [
                self._said(example.utterance, example.context),
                Message("assistant", one_line(example.output)),
            ]
        return (*turns, self._said(utterance, context))

    def _said(self, utterance: str, context: str) -> Message:
        before = (
            self.context.replace("{context}", one_line(context)) if self.has_context and context.strip() else ""
        )
        return Message("user", before + one_line(utterance))

    def _fill(self, text: str, fields: dict[str, str], context: str) -> list[Part]:
        said = text.replace("{context}", self.context if context.strip() else "")
        parts = []
        for i, piece in enumerate(FIELDS.split(said)):
            if i % 2:
                parts.append(Part(one_line({**fields, "context": context}[piece]), False))
            else:
                parts += self._split_markup(piece)
        return parts

    def _split_markup(self, text: str) -> list[Part]:
        if not self.markup:
            return [Part(text, False)]
        pattern = "(" + "|".join(map(re.escape, self.markup)) + ")"
        return [Part(piece, bool(i % 2)) for i, piece in enumerate(re.split(pattern, text))]


def one_line(text: str) -> str:
    """A user's line breaks would read as the end of an example."""
    return re.sub(r"[\r\n]+", " ", text)


def merge(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Join neighbours of one kind, so that tokens may span them."""
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
    """The names of the templates that come with fewparse."""
    folder = resources.files("fewparse") / "prompts"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


@cache
def bundled_template(name: str) -> Template:
    """A template that comes with fewparse, by name."""
    if name not in bundled_names():
        raise UnknownName("prompt", name, bundled_names(), "A domain can also bring its own file.")
    file = resources.files("fewparse") / "prompts" / f"{name}.toml"
    return read_template(file.read_text(encoding="utf-8"), Path(f"{name}.toml"))


def read_template(source: str, path: Path) -> Template:
    """Read a template file; mistakes are shown with their place."""
    table = {"context": "{context}", **parse_toml(source, path)}
    known = set(Template.__dataclass_fields__) - {"name"}
    for key, value in table.items():
        line = next((n for n, text in enumerate(source.splitlines(), 1) if text.startswith(key)), None)
        if key not in known:
            raise DomainError(f"unknown key {key!r}; expected one of {', '.join(sorted(known))}", path, line)
        if key == "markup":
            if not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
                raise DomainError("`markup` is a list of strings", path, line)
        elif not isinstance(value, str):
            raise DomainError(f"`{key}` is a string", path, line)
    for key, fields in MENTIONED.items():
        if key not in table:
            raise DomainError(f"`{key}` is missing", path)
        for field in fields:
            if f"{{{field}}}" not in table[key]:
                raise DomainError(f"`{key}` does not mention {{{field}}}", path)
    for key in ("query", "context"):
        if "{output}" in table[key]:
            raise DomainError(f"`{key}` mentions {{output}}, which only `example` has", path)
    if table["query"].endswith(" "):
        raise DomainError("`query` ends in a space: put it into `lead`, where the output begins", path)
    return Template(name=path.stem, **(table | {"markup": tuple(table.get("markup", ()))}))

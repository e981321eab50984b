"""Write the folder of a domain whose programs are function calls."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fewparse.domains.calls.compiled import json_constraint
from fewparse.domains.calls.declarations import FUNCTIONS, Declarations, FunctionDeclaration
from fewparse.domains.calls.grammar import function_grammar
from fewparse.domains.calls.program import Call, Notation, read_program, write_program
from fewparse.domains.calls.signatures import sentence
from fewparse.domains.calls.sources import Source
from fewparse.errors import ConstraintError, FewparseError, InvalidProgram, UsageError
from fewparse.files import os_reason
from fewparse.grammar.parsing.shortest_suffix import Completer
from fewparse.text import printable
from fewparse.vocabulary import BYTES

SETTINGS = """\
# The settings of this domain: its programs are calls of the functions in functions.json.
name = {name}
description = {description}
target = "program"
prompt = "calls"                      # a bundled template that shows the functions, or a .toml file in this folder
{execution}
[retrieve]
examples = 8                          # number of examples in the prompt, if examples.jsonl has any
retriever = "embedding"               # embedding, bm25, lm, random or all
description_lines = 30                # number of functions in the prompt: the most similar ones to the utterance

[constraint]
kind = "calls"
functions = "functions.json"          # or any list of tools in OpenAI's format or of an MCP server
notation = {notation}{blank}# call: name(argument=value, ...), or json: {{"name":...,"arguments":{{...}}}}
several_calls = {several}{gap}# whether a program is a list of calls
# copy = ["TEXT"]                     # notation call: texts must be copied from the utterance

[search]
decoder = "speculative"               # speculative, beam or greedy
width = 5
"""
EXECUTIONS = {
    "functions": """\
executor = "executor.py:execute"      # calls the Python functions
execute = "on-request"                # only with --execute: the functions may have effects
normal_form = "fewparse.domains.calls.program:execute"  # how `fewparse eval` compares calls: by name and arguments
""",
    "openapi": """\
executor = "executor.py:execute"      # returns the HTTP request of a call; nothing is sent
""",
    "json": """\
executor = "fewparse.domains.calls.program:execute"  # returns the call as a JSON value
""",
}
README = """\
# {name}

A domain of {count} functions, made by `fewparse new` from {source}. In this folder:

```sh
fewparse parse . "what you would say"     # --explain shows the prompt and the search
fewparse check .                          # after changes
```

`functions.json` declares the functions, `domain.toml` has the settings. Examples are optional and make small
models much better: one JSON object per line of `examples.jsonl`, such as

```json
{example}
```
"""
IMPORT_PATH = "import sys\n\nsys.path.insert(0, {folder})  # where the module is\n\n"
EXECUTORS = {
    "functions": '''\
"""Calls the functions of this domain. They run only where execution is asked for: fewparse parse ... --execute."""

{path}from fewparse.domains.calls.python_functions import PythonCalls

execute = PythonCalls({name})
''',
    "openapi": '''\
"""Returns the HTTP request of a call: method, URL, query, headers and body. Nothing is sent."""

from pathlib import Path

from fewparse.domains.calls.http_request import HttpRequests

execute = HttpRequests(Path(__file__).with_name("functions.json"))
''',
}


@dataclass(frozen=True)
class CallsDomain:
    """What the folder of a domain is made from."""

    name: str
    source: Source
    notation: Notation = "call"
    several_calls: bool = False

    def write(self, folder: Path) -> None:
        """Write the folder, which must not exist; raise `UsageError` if it cannot be written."""
        files = {
            "domain.toml": self.settings(),
            FUNCTIONS: self.source.declarations.to_json(),
            "examples.jsonl": "",
            "README.md": self.readme(),
        }
        if self.source.kind in EXECUTORS:
            files["executor.py"] = self.executor()
        try:
            folder.mkdir(parents=True)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{folder} cannot be created: {os_reason(error)}") from None

    def executor(self) -> str:
        """Return the content of executor.py."""
        folder = self.source.python_folder
        path = "" if folder is None else IMPORT_PATH.format(folder=repr(str(folder)))
        return EXECUTORS[self.source.kind].format(path=path, name=repr(self.source.name))

    def readme(self) -> str:
        """Return what to do next."""
        example = json.dumps({"utterance": "what you would say", "program": self.sample()}, ensure_ascii=False)
        count = len(self.source.declarations.functions)
        return README.format(name=self.name, count=count, source=self.source.name, example=example)

    def sample(self) -> str:
        """Return a short program: a call of the first function."""
        function = self.source.declarations.functions[0]
        try:
            text = Completer(function_grammar(function, self.source.declarations)).shortest_suffix("") or ""
            calls, _ = read_program(text)
        except (ConstraintError, InvalidProgram):
            calls = [Call(function.name, {})]
        return write_program(calls, self.notation, self.several_calls)

    @property
    def how_to_write(self) -> str:
        """How calls are written, for the model."""
        call = "name(argument=value)" if self.notation == "call" else '{"name":"...","arguments":{...}}'
        values = ", with values as in JSON" if self.notation == "call" else ""
        return (
            f"Write calls as [{call}, ...]{values}." if self.several_calls else f"Write a call as {call}{values}."
        )

    def settings(self) -> str:
        """Return the content of domain.toml."""
        notation, several = toml_text(self.notation), str(self.several_calls).lower()
        return SETTINGS.format(
            name=toml_text(self.name),
            description=toml_text(" ".join(filter(None, (sentence(self.source.description), self.how_to_write)))),
            execution=EXECUTIONS[self.source.kind],
            notation=notation,
            blank=" " * (27 - len(notation)),
            several=several,
            gap=" " * (22 - len(several)),
        )


def toml_text(text: str) -> str:
    """Return a text as a string of TOML on one line."""
    return json.dumps(printable(" ".join(text.split())), ensure_ascii=False)


def check_enforceable(function: FunctionDeclaration, declarations: Declarations, notation: Notation) -> None:
    """Raise an error if a notation cannot enforce the schema of a function."""
    if notation == "call":
        function_grammar(function, declarations)
    else:
        json_constraint(function, declarations, BYTES)


def enforceable(declarations: Declarations, notation: Notation, skip: bool) -> tuple[Declarations, list[str]]:
    """Return declarations that a notation can enforce, and what was left out.

    With `skip`, optional arguments that cannot be enforced are left out, and functions with such required ones;
    without it, they raise an error with their path.
    """
    functions: list[FunctionDeclaration] = []
    left_out: list[str] = []
    for function in declarations.functions:
        try:
            check_enforceable(function, declarations, notation)
            functions.append(function)
        except FewparseError as error:
            if not skip:
                raise
            kept, reasons = without_optional(function, declarations, notation)
            left_out += reasons or [error.message]
            functions += [] if kept is None else [kept]
    if not functions:
        raise UsageError(f"no function can be used: {left_out[0]}")
    return replace(declarations, functions=tuple(functions)), left_out


def without_optional(
    function: FunctionDeclaration, declarations: Declarations, notation: Notation
) -> tuple[FunctionDeclaration | None, list[str]]:
    """Return a function without the optional arguments that cannot be enforced; None if that is not enough."""
    kept: dict[str, Any] = dict(function.arguments)
    reasons: list[str] = []
    for name in function.arguments.keys() - function.required:
        only = {"type": "object", "properties": {name: kept[name]}}
        try:
            check_enforceable(replace(function, parameters=only), declarations, notation)
        except FewparseError as error:
            reasons.append(error.message)
            del kept[name]
    smaller = replace(function, parameters={**function.parameters, "properties": kept})
    try:
        check_enforceable(smaller, declarations, notation)
    except FewparseError as error:
        return None, [*reasons, error.message]
    return smaller, sorted(reasons)

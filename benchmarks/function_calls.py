"""Function calls of the Berkeley Function-Calling Leaderboard (BFCL): constrained beside unconstrained decoding.

Every item has functions of its own, and here each item is parsed under a constraint
made from its functions, which the prompt shows as its context. Examples, if there are any, are the most similar
ones of the items that are not evaluated, with their own functions. An output is judged by these steps: it parses,
names a function of the item, its arguments are valid under the schema (by the library `jsonschema`), and they are
accepted by the item's lists of values, compared as BFCL does: texts without case, spaces and punctuation.

Run: python benchmarks/function_calls.py FOLDER [--limit 100] [--notation call] [--examples 0 4] [--decoder NAME]
FOLDER has simple.jsonl: lines with `utterance`, `functions` and `accepted`.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema

from fewparse import Example, LanguageModel, Options, Parser, load_domain, open_model
from fewparse.datasets.function_calls.accepted import AcceptedCall, first_accepted
from fewparse.domains.calls.accepted import is_accepted
from fewparse.domains.calls.compiled import CallForm, FunctionConstraints
from fewparse.domains.calls.declarations import Declarations, declarations_of
from fewparse.domains.calls.ordering import ordered
from fewparse.domains.calls.program import Call, Notation, read_program, write_program
from fewparse.domains.calls.references import SpecDocument
from fewparse.domains.calls.signatures import describe
from fewparse.errors import FewparseError, InvalidProgram
from fewparse.evaluate.metrics import count
from measure import PROMPTS, write

SETTINGS = """\
name = "function-calls"
prompt = "prompt.toml"
[retrieve]
order = "best-last"
[constraint]
kind = "none"
[search]
width = 5
max_tokens = 120
"""


@dataclass(frozen=True)
class Item:
    """An utterance, its functions, and for each argument of its function the accepted values."""

    utterance: str
    declarations: Declarations
    accepted: list[AcceptedCall]

    @staticmethod
    def read(line: str) -> "Item":
        """Read a line of the data."""
        row = json.loads(line)
        return Item(row["utterance"], declarations_of(SpecDocument(row["functions"], row["id"])), row["accepted"])

    @property
    def context(self) -> str:
        """The functions, as the prompt shows them."""
        return describe(self.declarations)

    def gold(self) -> Call:
        """Return a call that is accepted: the first values, without the arguments that may be left out."""
        ((name, values),) = self.accepted[0].items()
        function = self.declarations.by_name[name]
        given = first_accepted(values, function.required)
        return Call(name, ordered(given, function.parameters, self.declarations.definitions))

    def example(self, notation: Notation) -> Example:
        """Return the item as an example for prompts of other items."""
        return Example(self.utterance, write_program([self.gold()], notation, False), context=self.context)


class Verdict(NamedTuple):
    """Whether an output parses, names a function of the item, has valid arguments, and is accepted."""

    parses: bool
    exists: bool = False
    valid: bool = False
    accepted: bool = False


def judge(output: str | None, item: Item) -> Verdict:
    """Return the verdict on an output."""
    try:
        calls, several = read_program(output or "")
    except InvalidProgram:
        return Verdict(False)
    if several or calls[0].name not in item.declarations.by_name:
        return Verdict(True)
    call = calls[0]
    schema = item.declarations.schema_of(item.declarations.by_name[call.name])
    valid = jsonschema.Draft202012Validator(schema).is_valid(call.arguments)
    return Verdict(True, True, valid, any(is_accepted(call, each) for each in item.accepted))


def run(
    items: Sequence[Item],
    pool: Sequence[Item],
    model: LanguageModel,
    notation: Notation,
    examples: int,
    decoder: str = "speculative",
) -> Iterator[tuple[str, Item, str | None]]:
    """Yield the outputs on all items with and without a constraint, with the name of the setting."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "domain.toml").write_text(SETTINGS)
        (path / "prompt.toml").write_text((PROMPTS / "function-calls.toml").read_text())
        rows = (vars(item.example(notation)) for item in pool)
        (path / "examples.jsonl").write_text("".join(json.dumps(without_none(row)) + "\n" for row in rows))
        domain = load_domain(path)
        options = Options.resolve(domain, model.name, examples=examples, decoder=decoder)
        free = Parser(domain, model, options)
        for item in items:
            form = CallForm(notation)
            assert model.vocabulary is not None
            constraint = FunctionConstraints(item.declarations, form, model.vocabulary).dispatch()
            parsers = {"constrained": Parser(domain, model, options, constraint=constraint), "unconstrained": free}
            for name, parser in parsers.items():
                yield name, item, parsed(parser, item)


def without_none(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without values that are None."""
    return {key: value for key, value in row.items() if value is not None}


def parsed(parser: Parser, item: Item) -> str | None:
    """Return the output of a parser on an item; None if it fails."""
    try:
        return parser.parse(item.utterance, item.context).output
    except FewparseError as error:
        print(f"failed: {error}")
        return None


def main() -> None:
    """Write a row for each setting."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--limit", type=int, default=100)
    arguments.add_argument("--notation", choices=["call", "json"], default="call")
    arguments.add_argument("--examples", type=int, nargs="+", default=[0, 4])
    arguments.add_argument("--decoder", default="speculative")
    arguments.add_argument("--model", default="embedded")
    arguments.add_argument("--out", default="function-calls", help="name of the files in benchmarks/results")
    chosen = arguments.parse_args()
    all_items = [Item.read(line) for line in (chosen.folder / "simple.jsonl").read_text().splitlines()]
    items, pool = all_items[: chosen.limit], all_items[chosen.limit :]
    model = open_model(chosen.model)
    rows: list[dict[str, object]] = []
    for examples in chosen.examples:
        verdicts: dict[str, list[Verdict]] = {}
        for name, item, output in run(items, pool, model, chosen.notation, examples, chosen.decoder):
            verdicts.setdefault(name, []).append(judge(output, item))
            print(f"{name} {examples}: {verdicts[name][-1]._asdict()} {output}", flush=True)
        for name, found in verdicts.items():
            setting = {"setting": name, "notation": chosen.notation, "decoder": chosen.decoder}
            rows.append({**setting, "examples": examples, **shares(found)})
        write(chosen.out, rows)


def shares(verdicts: Sequence[Verdict]) -> dict[str, object]:
    """Return the share of outputs that pass each step, and the 95% interval of the last one."""
    found: dict[str, object] = {"items": len(verdicts)}
    for step in Verdict._fields:
        found[step] = count([getattr(verdict, step) for verdict in verdicts]).value
    low, high = count([verdict.accepted for verdict in verdicts]).interval()
    return {**found, "95% interval": f"{low:.2f}-{high:.2f}"}


if __name__ == "__main__":
    main()

"""What the constraint of function calls accepts, and how long it takes, without a model.

gold          the accepted calls of BFCL: which share the constraint of the item's functions accepts
schemas       schemas of JSONSchemaBench as parameters: compiled or refused, instances wrongly accepted or not,
              and random walks that do not end in a valid call, by the library `jsonschema`
operations    an OpenAPI document with a thousand operations: seconds to read and check it, and for the first mask

Run: python benchmarks/function_schemas.py FOLDER, which has function-calls/ and jsonschemabench/
"""

import gzip
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema

from fewparse.domains.calls.compiled import CallForm, FunctionConstraints
from fewparse.domains.calls.declarations import Declarations, declarations_of
from fewparse.domains.calls.folder import CallsDomain, enforceable
from fewparse.domains.calls.ordering import ordered
from fewparse.domains.calls.program import Call, Notation, read_program, write_program
from fewparse.domains.calls.references import SpecDocument
from fewparse.domains.calls.sources import read_source
from fewparse.domains.load import load_domain
from fewparse.errors import FewparseError
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.weights import pull
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES
from function_calls import Item
from measure import write

NOTATIONS: tuple[Notation, ...] = ("call", "json")
WALKS = 2
WORDS = ["user", "repo", "issue", "list", "get", "create", "delete", "update", "page", "limit", "sort", "team"]


def gold(folder: Path) -> list[dict[str, object]]:
    """Return the share of accepted calls of BFCL that the constraint accepts."""
    rows: list[dict[str, object]] = []
    for name in ("simple", "multiple"):
        items = [Item.read(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        for notation in NOTATIONS:
            accepted = 0
            for item in items:
                constraint = FunctionConstraints(item.declarations, CallForm(notation), BYTES).dispatch()
                accepted += constraint.accepts(write_program([item.gold()], notation, False).encode())
            rows.append({"set": name, "notation": notation, "items": len(items), "accepted": accepted})
    return rows


def schemas(path: Path) -> list[dict[str, object]]:
    """Return how the schemas of objects of JSONSchemaBench do as parameters, in the notation `call`."""
    counts: Counter[str] = Counter()
    for line in gzip.decompress(path.read_bytes()).splitlines():
        row = json.loads(line)
        try:
            parameters = {**row["schema"], "$defs": row["schema"].get("$defs", {})}
            declarations = declarations_of(SpecDocument([{"name": "f", "parameters": parameters}], row["name"]))
            constraint = FunctionConstraints(declarations, CallForm(), BYTES).dispatch()
            constraint.start().advance(b"f(")  # compiles it
        except FewparseError as error:
            counts["not objects" if "schema of an object" in error.message else "refused"] += 1
            continue
        counts["compiled"] += 1
        counts.update(judged(row, declarations, constraint.accepts))
        draft = jsonschema.validators.validator_for(row["schema"], jsonschema.Draft202012Validator)
        validator = draft(row["schema"])
        for seed in range(WALKS):
            last = end_of_walk(constraint, random.Random(seed), long=60)
            valid = validator.is_valid(read_program(last.text.decode())[0][0].arguments)
            counts["valid walks" if valid else "invalid walks"] += 1
    return [{"outcome": outcome, "number": number} for outcome, number in sorted(counts.items())]


def judged(row: dict[str, Any], declarations: Declarations, accepts: Callable[[bytes], bool]) -> Counter[str]:
    """Count the instances of a schema that are rightly or wrongly accepted or rejected."""
    counts: Counter[str] = Counter()
    parameters = declarations.functions[0].parameters
    for test in row["tests"]:
        if isinstance(test["data"], dict):
            call = Call("f", ordered(test["data"], parameters, declarations.definitions))
            accepted = accepts(write_program([call], "call", False).encode())
            right = "rightly" if accepted == test["valid"] else "wrongly"
            counts[f"{right} {'accepted' if accepted else 'rejected'}"] += 1
    return counts


def operations(count: int = 1000) -> list[dict[str, object]]:
    """Return the seconds of each step from a large OpenAPI document to the first mask."""
    rows: list[dict[str, object]] = []
    model = EmbeddedModel(pull())
    assert model.vocabulary is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.json"
        path.write_text(json.dumps(large_document(count)))
        source, reading = timed(partial(read_source, "openapi", str(path)))
        for notation in NOTATIONS:
            _, checking = timed(partial(enforceable, source.declarations, notation, False))
            made = Path(folder) / notation
            CallsDomain("large", source, notation).write(made)
            domain, loading = timed(partial(checked_domain, made))
            constraint = domain.constraint(model.vocabulary, "program")
            _, first_mask = timed(constraint.start().mask)
            row: dict[str, object] = {"notation": notation, "operations": count, "bytes": path.stat().st_size}
            seconds = {"read": reading, "check all": checking, "load": loading, "first mask": first_mask}
            rows.append(row | {f"{step} s": round(each, 2) for step, each in seconds.items()})
    model.close()
    return rows


def checked_domain(folder: Path) -> Any:
    """Load a domain and check it, as every command does."""
    domain = load_domain(folder)
    domain.check()
    return domain


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a function, and the processor time that it took."""
    start = time.process_time()
    return work(), time.process_time() - start


def large_document(count: int) -> dict[str, Any]:
    """Return an OpenAPI document with many operations that share schemas, which refer to each other."""
    rng = random.Random(0)
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "integer", "minimum": 1, "maximum": 100},
        {"type": "boolean"},
        {"type": "string", "enum": WORDS[:5]},
    ]
    shared = {
        f"Thing{i}": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "kind": {"enum": ["a", "b", "c"]},
                "next": {"$ref": f"#/components/schemas/Thing{(7 * i + 1) % 100}"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        }
        for i in range(100)
    }
    paths: dict[str, Any] = {}
    for i in range(count):
        own = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        query = [
            {"name": f"{rng.choice(WORDS)}{k}", "in": "query", "description": "some", "schema": rng.choice(kinds)}
            for k in range(5)
        ]
        name = "_".join(rng.choices(WORDS, k=3))
        operation: dict[str, Any] = {"operationId": f"{name}{i}", "parameters": [own, *query]}
        if i % 3 == 0:
            schema = {"$ref": f"#/components/schemas/Thing{i % 100}"}
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths[f"/p{i}/{{id}}"] = {"post": operation}
    return {"openapi": "3.1.0", "paths": paths, "components": {"schemas": shared}}


def main() -> None:
    """Write one table for each part."""
    folder = Path(sys.argv[1])
    write("function-gold", gold(folder / "function-calls"))
    write("function-schemas", schemas(folder / "jsonschemabench" / "schemas.jsonl.gz"))
    write("function-operations", operations())


if __name__ == "__main__":
    main()

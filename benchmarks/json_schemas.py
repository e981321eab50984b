"""How the JSON Schema constraint does on JSONSchemaBench, without a model.

Each schema is compiled or refused in a process of its own with limits on memory and time. The instances of the
benchmark are judged by the constraint's states alone, without the validation that follows them in a parser; random
walks through the masks, over bytes and over the tokens of the embedded model, are judged by `jsonschema` alone.

Run: python benchmarks/json_schemas.py FOLDER [PREFIX]
FOLDER has jsonschemabench/; PREFIX is one of names of schemas.
"""

import gzip
import json
import multiprocessing
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jsonschema

from fewparse.constrain.json import JsonConstraint
from fewparse.constrain.json_writer import JsonWriter
from fewparse.errors import FewparseError
from fewparse.files import unique_object
from fewparse.json_schema.document import parse_schema
from fewparse.json_schema.translate import translate
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.weights import pull
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES, Vocabulary
from measure import RESULTS, write

WALKS = 4
MEMORY_BYTES = 3 << 30
SECONDS = 120
Row = dict[str, Any]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["json_schemas"])


def judge(row: Row, vocabulary: Vocabulary) -> Row:
    """Return what the constraint of a schema does."""
    start = time.process_time()
    try:
        translation = translate(parse_schema(json.dumps(row["schema"]), "schema"))
        constraint = JsonConstraint(translation, BYTES)
    except FewparseError as error:
        return {"outcome": "refused", "reason": error.message.split("\n")[0]}
    found: Row = {"outcome": "compiled", "compile seconds": round(time.process_time() - start, 2)}
    writer = JsonWriter(translation)
    counts: Counter[str] = Counter()
    for test in row["tests"]:
        accepted = writer.write(test["data"], constraint.start()) is not None
        kind = "valid" if test["valid"] else "invalid"
        counts[f"{kind} {'accepted' if accepted else 'rejected'}"] += 1
    is_valid = independent_judge(row["schema"])
    for used in (constraint, JsonConstraint(translation, vocabulary)):
        for seed in range(WALKS):
            last = end_of_walk(used, random.Random(seed), long=60)
            good = is_valid(last.text)
            counts["valid walks" if good else "invalid walks"] += 1
            if not good:
                found.setdefault("invalid texts", []).append(last.text.decode(errors="replace"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return found | counts | {"seconds": round(time.process_time() - start, 1), "peak MB": peak}


def independent_judge(schema: Any) -> Callable[[bytes], bool]:
    """Return whether a text is JSON without repeated keys that `jsonschema` finds valid, formats included."""
    draft = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    validator = draft(schema, format_checker=draft.FORMAT_CHECKER)

    def is_valid(text: bytes) -> bool:
        try:
            return bool(validator.is_valid(json.loads(text, object_pairs_hook=unique_object)))
        except ValueError:
            return False

    return is_valid


def work(row: Row, vocabulary: Vocabulary, sender: Connection) -> None:
    """Send what `judge` returns from a process with limits."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        sender.send(judge(row, vocabulary))
    except BaseException as error:
        sender.send({"outcome": "failed", "reason": f"{type(error).__name__}: {error}"[:300]})


def in_child(row: Row, vocabulary: Vocabulary) -> Row:
    """Return what `judge` returns in a process of its own, or how the process ended."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=work, args=(row, vocabulary, sender))
    child.start()
    sender.close()
    try:
        found: Row = receiver.recv()
    except EOFError:
        found = {"outcome": "failed"}
    child.join()
    if found["outcome"] == "failed":
        found.setdefault("reason", f"exit code {child.exitcode}")
    return {"name": row["name"]} | found


def source_of(item: Row) -> str:
    """Return the source of a schema, the start of its name."""
    source: str = item["name"].split("---")[0]
    return source.split("_")[0] if source.startswith(("BFCL", "JME")) else source


def summary(source: str, rows: Iterable[Row]) -> Row:
    """Return the counts of some schemas."""
    rows = list(rows)
    compiled = [row for row in rows if row["outcome"] == "compiled"]
    total: Counter[str] = Counter()
    for row in compiled:
        total.update({key: value for key, value in row.items() if isinstance(value, int)})
    return {
        "source": source,
        "schemas": len(rows),
        "compiled": len(compiled),
        "refused": sum(row["outcome"] == "refused" for row in rows),
        "failed": sum(row["outcome"] == "failed" for row in rows),
        "all instances right": sum(not {"valid rejected", "invalid accepted"} & row.keys() for row in compiled),
        **{
            key: total[key]
            for key in (
                "valid accepted",
                "valid rejected",
                "invalid accepted",
                "invalid rejected",
                "valid walks",
                "invalid walks",
            )
        },
        "slowest s": max((row["seconds"] for row in compiled), default=0),
        "peak MB": max((row["peak MB"] for row in compiled), default=0),
    }


def main() -> None:
    """Write one row for each schema, and a table by source; with a prefix of names, only show the rows."""
    path = Path(sys.argv[1]) / "jsonschemabench" / "schemas.jsonl.gz"
    prefix = sys.argv[2] if len(sys.argv) > 2 else ""
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    model = EmbeddedModel(pull())
    vocabulary = model.vocabulary
    assert vocabulary is not None
    model.close()
    items: list[Row] = []
    for row in rows:
        if row["name"].startswith(prefix):
            items.append(in_child(row, vocabulary))
            print(json.dumps(items[-1]), flush=True)
    if prefix:
        return
    lines = [json.dumps(item, ensure_ascii=False) for item in items]
    (RESULTS / "json-schemas-items.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    sources = sorted(set(map(source_of, items)))
    by_source = [summary(each, (item for item in items if source_of(item) == each)) for each in sources]
    write("json-schemas", [*by_source, summary("all", items)])


if __name__ == "__main__":
    main()

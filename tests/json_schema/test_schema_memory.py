"""Walks through long texts, and large schemas, in a process whose memory is limited."""

import json
import subprocess
import sys
from typing import Any

import pytest

MEMORY_BYTES = 2 << 30
PROGRAM = f"""
import json, random, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
from fewparse.constrain.json import JsonConstraint
from fewparse.json_schema.document import Document
from fewparse.json_schema.translate import translate
from fewparse.testing.constraints import end_of_walk
from fewparse.vocabulary import BYTES

constraint = JsonConstraint(translate(Document(json.loads(sys.argv[1]))), BYTES)
print(len(end_of_walk(constraint, random.Random(0)).text))
"""
LARGE: dict[str, tuple[Any, int]] = {
    "long text": ({"type": "string", "minLength": 3000}, 3000),
    "long text of a huge maximum": ({"type": "string", "minLength": 10, "maxLength": 10**9}, 10),
    "many items": ({"type": "array", "minItems": 600, "items": {"type": "null"}, "maxItems": 10**9}, 3000),
    "long pattern": ({"type": "string", "pattern": "^[a-c]{2000}$"}, 2000),
}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize("name", LARGE)
def test_a_walk_needs_little_memory(name: str) -> None:
    schema, least = LARGE[name]
    command = [sys.executable, "-c", PROGRAM, json.dumps(schema)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= least

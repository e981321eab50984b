"""The domain of a large schema: made, and walked at random, within limits on memory."""

import sqlite3
import subprocess
import sys
from pathlib import Path

from support.campaign import sizes

SCRIPT = """
import random, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]) << 20,) * 2)
from pathlib import Path
from fewparse.domains.load import load_domain
from fewparse.domains.sql.folder import SqlDomain
from fewparse.domains.sql.urls import parse_url
from fewparse.vocabulary import BYTES

folder = Path(sys.argv[1]) / "large"
SqlDomain.reflect("large", parse_url(f"sqlite:///{sys.argv[1]}/large.db")).write(folder)
domain = load_domain(folder)
rng = random.Random(0)
for target in sys.argv[3:]:
    constraint = domain.constraint(BYTES, target, "what is the name of table 7")
    for _ in range(3):
        state, text = constraint.start(), b""
        while len(text) < 200 and not (state.may_end and rng.random() < 0.3):
            mask = state.mask()
            allowed = [byte for byte in range(256) if mask[byte]]
            if not allowed:
                break
            text += bytes([rng.choice(allowed)])
            state = state.advance(text[-1:])
        ending = constraint.ending(text)
        assert ending is not None
        whole = (text + ending).decode()
        program = domain.program_of(whole, target)
        assert program is not None
        domain.execute(program)
print("executed")
"""
TYPES = ("TEXT", "REAL", "DATE", "INTEGER")


def write_database(path: Path, tables: int, columns: int) -> None:
    """Write tables with a foreign key each, to one before it."""
    with sqlite3.connect(path) as connection:
        for table in range(tables):
            others = ", ".join(
                f"c{table}_{k} {('TEXT', 'REAL', 'DATE', 'INTEGER')[k % 4]}" for k in range(columns)
            )
            key = f"parent INTEGER REFERENCES table_{table // 2}(id)"
            connection.execute(f"CREATE TABLE table_{table} (id INTEGER PRIMARY KEY, {key}, {others})")


@sizes("tables", 4, 200)
def test_random_walks_are_executed_within_a_limit_on_memory(tables: int, isolated_cache: Path) -> None:
    write_database(isolated_cache / "large.db", tables, columns=4 if tables < 100 else 18)
    megabytes, targets = (600, ["program"]) if tables < 100 else (3_000, ["program", "canonical"])
    command = [sys.executable, "-c", SCRIPT, str(isolated_cache), str(megabytes), *targets]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("executed\n", 0), ended.stderr

"""How long the executor of Overnight takes: every distinct program of the eight domains, once.

Beside it, in the same run, how long merely reading the programs takes: what is left is the work on the world.
Run: python benchmarks/execution.py; the dataset must be there (fewparse data get overnight).
"""

import time
from collections.abc import Callable
from typing import ParamSpec

from fewparse import load_domain
from fewparse.datasets.overnight.executor import denote
from fewparse.datasets.overnight.values import read_expression
from fewparse.datasets.overnight.world import WORLDS, World, load_world
from measure import write

P = ParamSpec("P")


def main() -> None:
    """One row a domain, and one for all."""
    rows: list[dict[str, float]] = []
    for name in WORLDS:
        programs = [meaning.program for meaning in load_domain(f"overnight/{name}").known_outputs]
        rows.append(
            {
                "programs": len(programs),
                "failed": sum(denote(program, load_world(name)).error is not None for program in programs),
                "seconds to load the world": timed(load_world.__wrapped__, name),
                "seconds to read": timed(read_all, programs),
                "seconds to read and execute": timed(execute_all, programs, load_world(name)),
            }
        )
    rows.append({head: round(sum(row[head] for row in rows), 4) for head in rows[0]})
    write("execution", [{"domain": name, **row} for name, row in zip([*WORLDS, "all"], rows, strict=True)])


def read_all(programs: list[str]) -> None:
    """Only read."""
    for program in programs:
        read_expression(program)


def execute_all(programs: list[str], world: World) -> None:
    """Read and execute."""
    for program in programs:
        denote(program, world)


def timed(work: Callable[P, object], *given: P.args, **named: P.kwargs) -> float:
    """The seconds that some work takes."""
    begin = time.perf_counter()
    work(*given, **named)
    return round(time.perf_counter() - begin, 4)


if __name__ == "__main__":
    main()

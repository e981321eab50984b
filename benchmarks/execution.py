"""Measure the executor of Overnight: every distinct program of the eight domains, once.

The time to parse the programs without executing them is measured in the same run.
Run: python benchmarks/execution.py; needs the dataset (fewparse data get overnight).
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
    """Write one row per domain, and one for all domains."""
    rows: list[dict[str, float]] = []
    for name in WORLDS:
        programs = [output.program for output in load_domain(f"overnight/{name}").known_outputs]
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
    """Parse programs without executing them."""
    for program in programs:
        read_expression(program)


def execute_all(programs: list[str], world: World) -> None:
    """Parse and execute programs."""
    for program in programs:
        denote(program, world)


def timed(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    function(*args, **kwargs)
    return round(time.perf_counter() - start, 4)


if __name__ == "__main__":
    main()

"""Damage files at random places, as a faulty disk, a broken converter or an attacker would."""

import random
from collections.abc import Iterator, Sequence

PATTERNS = (
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\1\0\0\0",
    b"\0\0\xc0\x7f",  # NaN in single precision
    b"\0\0\x80\x7f",  # infinity
    b"\0\x7e\0\x7e",  # NaN in half precision, twice
)


def mutations(content: bytes, regions: Sequence[tuple[int, int]], count: int, seed: int = 0) -> Iterator[bytes]:
    """Yield damaged contents; each is damaged in one of the regions, from a start to an end."""
    chosen = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(content)
        start, end = chosen.choice(regions)
        for _ in range(chosen.choice((1, 1, 1, 2, 5))):
            at = chosen.randrange(start, end)
            kind = chosen.randrange(4)
            if kind == 0:
                damaged[at] ^= 1 << chosen.randrange(8)
            elif kind == 1:
                damaged[at] = chosen.randrange(256)
            elif kind == 2:
                damaged[at : at + 4] = chosen.choice(PATTERNS)
            else:
                del damaged[at : at + chosen.choice((1, 4, 8))]
        if damaged != content:
            yield bytes(damaged[: len(content)])

"""Regular expressions that are asked about one character at a time, as sets of characters.

The syntax is that of the `regex` module, and so is the meaning: a character belongs to the set iff the pattern
matches at its beginning. So `a?` is any character, since it matches nothing too, and `ab` is none.
"""

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from math import prod
from typing import NoReturn

import regex

from fewparse.errors import LimitExceeded
from fewparse.grammar.readers.regex import RegexReader
from fewparse.grammar.rules import LAST_CODE_POINT, SURROGATES, Chars

PLAIN_CHARACTER = re.compile(r"[^\\.^$*+?{}\[\]|()]", re.DOTALL)
PLAIN_CLASS = re.compile(r"\[\^?+(?:([^\\\[\]])(?!\1))++\]", re.DOTALL)
COUNTS = re.compile(r"\{[\d\s,]*\}", re.ASCII)
RECURSION = re.compile(r"\(\?(?:R|&|P>|[+-]?\d)")
LARGEST_COUNT = 1_000
LONGEST_PATTERN = 2_000
FEW = 128
SECONDS = 1.0


def single_char(pattern: str, fail: Callable[[str, int], NoReturn]) -> Chars:
    """The characters that a pattern matches; `fail(message, offset)` reports a mistake and does not return."""
    if PLAIN_CHARACTER.fullmatch(pattern):
        return Chars.of([(ord(pattern), ord(pattern))]).without_surrogates()
    if PLAIN_CLASS.fullmatch(pattern):
        read = RegexReader(pattern, False, fail).read()
        assert isinstance(read, Chars)
        return read.without_surrogates()
    if len(pattern) > LONGEST_PATTERN:
        message = f"a regular expression for one character has {len(pattern):,} characters"
        raise LimitExceeded(
            message, f"At most {LONGEST_PATTERN:,} are read, unless it is a plain class like [a-z]."
        )
    refuse_costly(pattern, fail)
    try:
        return by_trial(pattern)
    except regex.error as error:
        fail(f"the regular expression is wrong: {error.msg}", error.pos or 0)
    except (RecursionError, MemoryError, OverflowError, ValueError):
        fail("the regular expression is too complex", 0)
    except TimeoutError:
        raise LimitExceeded(
            "a regular expression takes too long to match one character", f"Simplify /{pattern[:60]}/."
        ) from None


def refuse_costly(pattern: str, fail: Callable[[str, int], NoReturn]) -> None:
    """What may fill the memory before any limit of time is seen; one character has no need of it."""
    counts = [int(count) for braces in COUNTS.findall(pattern) for count in re.findall(r"\d+", braces)]
    if prod(max(count, 1) for count in counts) > LARGEST_COUNT:
        fail("the counts of the regular expression are too large", pattern.index("{"))
    if call := RECURSION.search(pattern):
        fail("a regular expression that calls its own parts is not understood", call.start())


@lru_cache(maxsize=1_000)
def by_trial(pattern: str) -> Chars:
    """Ask the pattern about every character there is: first about a few, patiently but not for ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match = regex.compile(pattern, cache_pattern=False).match
    for code in range(FEW):
        match(chr(code), timeout=SECONDS)
    surrogate, last_surrogate = SURROGATES.ranges[0]
    codes = chain(range(surrogate), range(last_surrogate + 1, LAST_CODE_POINT + 1))
    return Chars.of((code, code) for code in codes if match(chr(code)))

"""Small grammars, each difficult in its own way, and Lark as an independent oracle."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

from lark import Lark
from lark.exceptions import UnexpectedInput

SAMPLES = {
    "ambiguous": 'start: start start | "a" | "b" "b" | "ab"',
    "left-recursive": 'start: start "+" term | term\nterm: "x" | "(" start ")"',
    "right-recursive": 'start: item ";" start | item\nitem: "a" | "ba"',
    "centre-embedded": 'start: "a" start "a" | "b" start "b" | "c"',
    "epsilon": 'start: a b a\na: "x" |\nb: "y"?',
    "nullable list": 'start: "[" (item ("," item)*)? "]"\nitem: "a"? "b"*',
    "hidden left recursion": 'start: maybe start "a" | "b"\nmaybe: "c"?',
    "unit cycle": 'start: a | "x"\na: start | "y" a',
    "repeated empty string": 'start: ("a"? "b"?)*',
    "classes": 'start: /[a-c]+/ ":" /[^a]/ /[0-9]{2,3}/?',
    "quoted": 'start: "\\"" TEXT "\\"" ("," start)?\nTEXT: /[^"]+/',
    "unicode": 'start: (/[äöü]/ | /[一-三]/ | /[😀-😎]/ | "é" | "€" | "𝄞x")+',
    "overlapping keywords": 'start: word "b"? "c"*\nword: "a" | "ab" | "abc"',
    "no greedy lexer": 'start: "-"? name "-" name\nname: /[a-c-]+/ | "if"',
    "counted": 'start: ("ab"~2..3 | /[xy]{2,4}/) "z"i',
}
ALPHABETS = {
    "ambiguous": "ab",
    "left-recursive": "x+()",
    "right-recursive": "ab;",
    "centre-embedded": "abc",
    "epsilon": "xyz",
    "nullable list": "[]ab,",
    "hidden left recursion": "abc",
    "unit cycle": "xyz",
    "repeated empty string": "abc",
    "classes": "ab:1",
    "quoted": '"a,é',
    "unicode": "ä二😀é𝄞x",
    "overlapping keywords": "abc",
    "no greedy lexer": "a-if",
    "counted": "abxyzZ",
}
CALENDAR = (Path(__file__).parents[1] / "support" / "calendar.lark").read_text(encoding="utf-8")


@cache
def lark_language(source: str, start: str = "start") -> Callable[[str], bool]:
    """Membership in the language of a grammar by Lark, without a greedy lexer."""
    parser = Lark(source, parser="earley", lexer="dynamic_complete", ambiguity="forest", start=start)

    def accepts(text: str) -> bool:
        try:
            parser.parse(text)
        except UnexpectedInput:
            return False
        return True

    return accepts


def strings(alphabet: str, max_length: int) -> Iterator[str]:
    """All strings over an alphabet, by length."""
    for length in range(max_length + 1):
        yield from map("".join, product(alphabet, repeat=length))


def length_within(alphabet: str, count: int) -> int:
    """The greatest length up to which there are at most `count` strings."""
    length = 0
    while sum(len(alphabet) ** n for n in range(length + 2)) <= count:
        length += 1
    return length

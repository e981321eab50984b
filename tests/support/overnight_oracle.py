"""A second executor of the Overnight language, as naive as can be, to compare the real one with.

It rewrites programs as text says, recurses, evaluates an argument wherever it lands, and scans the facts for every
look-up. Values are tuples: ("name", ID), ("number", MAGNITUDE, UNIT), ("date", Y, M, D), ("time", H, M),
("boolean", "true"), ("string", S). Lists are lists, strings are str, sizes are int and nothing is None.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any


class Error(Exception):
    """The program denotes an error."""


class GiveUp(Exception):
    """The program is too much for an oracle."""


def need(condition: bool) -> None:
    if not condition:
        raise Error


def parse(text: str) -> Any:
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def one() -> Any:
        need(bool(tokens))
        token = tokens.pop(0)
        need(token != ")")
        if token != "(":
            return token
        items = []
        while tokens and tokens[0] != ")":
            items.append(one())
        need(bool(tokens))
        tokens.pop(0)
        return tuple(items)

    tree = one()
    need(not tokens)
    return tree


def value(tree: Any) -> Any:
    if isinstance(tree, str):
        return ("name", tree)
    need(len(tree) > 1 and all(isinstance(item, str) for item in tree))
    if tree[0] == "number":
        need(
            len(tree) in (2, 3)
            and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", tree[1], re.A) is not None
        )
        need(math.isfinite(float(tree[1])))
        return ("number", float(tree[1]), tree[2] if len(tree) == 3 else "fb:en.unitless")
    need((tree[0], len(tree)) in (("date", 4), ("time", 3)))
    need(all(re.fullmatch(r"[-+]?\d+", item, re.A) for item in tree[1:]))
    need(all(-(2**31) <= int(item) < 2**31 for item in tree[1:]))
    return (tree[0], *map(int, tree[1:]))


def type_of(x: Any) -> str:
    need(x[0] != "string")
    if x[0] == "number":
        return str(x[2]) + "_number"
    if x[0] != "name":
        return "en." + str(x[0])
    pieces = x[1].split(".")
    kept = pieces[:-2] if pieces[-1][:1] == "_" else pieces[:-1]
    need(".".join(kept) != "")
    return ".".join(kept)


def numeric(kind: str) -> bool:
    return kind[-7:] == "_number" or kind == "en.date" or kind == "en.time"


def degree(x: Any) -> float:
    need(x[0] in ("number", "date", "time"))
    if x[0] == "date":
        year, month, day = (0 if part == -1 else part for part in x[1:])
        return float(year * 10000 + month * 100 + day)
    return float(x[1])


def number_text(x: float) -> str:
    exact = Fraction(repr(x))
    if exact.denominator == 1 and -(2**31) <= exact < 2**31:
        return str(exact)
    sign, size = "-" if exact < 0 else "", abs(exact)
    if size >= Fraction(1, 1000):
        thousandths = math.floor(size * 1000 + Fraction(1, 2))
        return f"{sign}{thousandths // 1000}.{thousandths % 1000:03d}"
    exponent = 0
    while size < 1:
        size, exponent = size * 10, exponent + 1
    hundredths = math.floor(size * 100 + Fraction(1, 2))
    if hundredths == 1000:
        hundredths, exponent = 100, exponent - 1
    return f"{sign}{hundredths // 100}.{hundredths % 100:02d}e-{exponent:02d}"


def text(x: Any) -> str:
    if x[0] == "number":
        return f"(number {number_text(x[1])}" + ("" if x[2] == "fb:en.unitless" else f" {x[2]}") + ")"
    return "(" + " ".join(map(str, x)) + ")"


def substitute(tree: Any, name: str, argument: Any) -> Any:
    if tree == ("var", name):
        return argument
    if isinstance(tree, str) or not tree:
        return tree
    if tree[0] == "lambda":
        free = len(tree) == 3 and tree[1] != name
        return ("lambda", tree[1], substitute(tree[2], name, argument)) if free else tree
    if tree[0] == "call":
        return (*tree[:2], *(substitute(item, name, argument) for item in tree[2:]))
    return tuple(substitute(item, name, argument) for item in tree) if isinstance(tree[0], tuple) else tree


def size(tree: Any) -> int:
    return 1 if isinstance(tree, str) else 1 + sum(map(size, tree))


class Oracle:
    def __init__(self, data: Mapping[str, Any]) -> None:
        self.signatures = {name: tuple(types) for name, types in data["properties"].items()}
        for name, (first, second) in list(self.signatures.items()):
            self.signatures["!" + name] = (second, first)
        self.facts = []
        for entity, properties in data["objects"].items():
            for name, texts in properties.items():
                for written in texts:
                    tree = parse(written)
                    self.facts.append((("name", entity), name, tree if tree[0] == "boolean" else value(tree)))

    def denote(self, program: str, fuel: int = 500) -> str:
        """The text of the denotation, or `error`."""
        self.fuel = fuel
        try:
            result, listed = self.evaluate(parse(program))
            need(listed)
        except Error:
            return "error"
        return "(" + " ".join(["list", *map(text, result)]) + ")"

    def evaluate(self, tree: Any) -> tuple[Any, bool]:
        """A result, and whether `listValue` made it."""
        self.fuel -= 1
        if self.fuel < 0:
            raise GiveUp
        need(tree != ())
        if isinstance(tree, tuple) and isinstance(tree[0], tuple):
            head = tree[0]
            need(len(tree) == 2 and len(head) == 3 and head[0] == "lambda" and isinstance(head[1], str))
            written = substitute(head[2], head[1], tree[1])
            self.fuel -= size(written) // 20
            return self.evaluate(written)
        if isinstance(tree, tuple) and tree[0] == "call":
            need(len(tree) > 1 and isinstance(tree[1], str))
            arguments = [self.evaluate(item)[0] for item in tree[2:]]
            return self.call(tree[1], arguments), tree[1] == "listValue"
        if isinstance(tree, tuple) and tree[0] == "string":
            need(len(tree) == 2 and isinstance(tree[1], str))
            return tree[1], False
        return value(tree), False

    def values(self, x: Any, p: str) -> list[Any]:
        need(any(x in (e, v) for e, _, v in self.facts))
        need(any(p in (q, "!" + q) for _, q, _ in self.facts))
        need(p in self.signatures and type_of(x) == self.signatures[p][0])
        forwards = [v for e, q, v in self.facts if (e, q) == (x, p)]
        return forwards + [e for e, q, v in self.facts if (v, "!" + q) == (x, p)]

    def check_second(self, p: str, wanted: list[Any]) -> None:
        for x in wanted:
            need(p in self.signatures and type_of(x) == self.signatures[p][1])

    def count(self, x: Any, p: str, among: list[Any] | None) -> int:
        return len([v for v in self.values(x, p) if among is None or v in among])

    def test(self, held: list[Any], sign: str, wanted: list[Any]) -> bool:
        if sign in ("=", "!="):
            return any(v == r for v in held for r in wanted) == (sign == "=")
        if sign not in ("<", "<=", ">", ">="):
            return False
        ours, theirs = [degree(v) for v in held], [degree(r) for r in wanted]
        return any(related(a, sign, b) for a in ours for b in theirs)

    def call(self, name: str, given: list[Any]) -> Any:
        shape = "".join(letter(argument) for argument in given)
        need(any(re.fullmatch(pattern, shape) for pattern in SHAPES.get(name, [])))
        method = getattr(self, "do_" + name.strip("."))
        return method(*given)

    def do_singleton(self, v: Any) -> Any:
        return [v]

    def do_reverse(self, p: str) -> Any:
        return p[1:] if p[0:1] == "!" else "!" + p

    def do_domain(self, p: str) -> Any:
        need(p in self.signatures)
        return self.do_getProperty([("name", self.signatures[p][0])], "!type")

    def do_getProperty(self, things: Any, p: str) -> Any:  # noqa: N802
        found: list[Any] = []
        for x in listed(things):
            found += [v for v in dict.fromkeys(self.values(x, p)) if v not in found]
        need(found != [])
        return found

    def do_filter(self, things: Any, p: str, sign: str = "=", wanted: Any = ("boolean", "true")) -> Any:
        self.check_second(p, listed(wanted))
        return [x for x in things if x[0] == "name" and self.test(self.values(x, p), sign, listed(wanted))]

    def do_ensureNumericProperty(self, p: str) -> Any:  # noqa: N802
        need(p in self.signatures and numeric(self.signatures[p][1]))
        return p

    def do_ensureNumericEntity(self, things: Any) -> Any:  # noqa: N802
        need(listed(things) != [] and numeric(type_of(listed(things)[0])))
        return listed(things)

    def do_superlative(self, things: Any, mode: str, p: str) -> Any:
        choose = max if mode == "max" else min
        degrees = [[degree(v) for v in self.values(x, p)] for x in things]
        return self.best(things, mode, [choose(many) if many else math.nan for many in degrees])

    def do_countSuperlative(self, things: Any, mode: str, p: str, among: Any = None) -> Any:  # noqa: N802
        self.check_second(p, among or [])
        need(p in self.signatures and not numeric(self.signatures[p][1]))
        return self.best(things, mode, [self.count(x, p, among) for x in things])

    def best(self, things: list[Any], mode: str, scores: list[float]) -> Any:
        if not things:
            return None
        if math.isnan(scores[0]):
            return [things[0]]
        real = [score for score in scores if not math.isnan(score)]
        record = max(real) if mode == "max" else min(real)
        return [x for x, score in zip(things, scores, strict=True) if score == record]

    def do_countComparative(self, things: Any, p: str, sign: str, n: Any, among: Any = None) -> Any:  # noqa: N802
        self.check_second(p, among or [])
        need(p in self.signatures and not numeric(self.signatures[p][1]))
        need(n[0] == "number")
        need(not things or sign in ("=", "<", ">", "<=", ">="))
        return [x for x in things if related(self.count(x, p, among), sign, n[1])]

    def do_concat(self, first: Any, second: Any) -> Any:
        need(first != second)
        for x in listed(first):
            for y in listed(second):
                need(type_of(x) == type_of(y))
        return listed(first) + listed(second)

    def do_aggregate(self, mode: str, numbers: Any) -> Any:
        need(mode in ("sum", "avg") and numbers != [] and all(x[0] == "number" for x in numbers))
        total = 0.0
        for x in numbers:
            total += x[1]
        need(math.isfinite(total))
        return [("number", total / (len(numbers) if mode == "avg" else 1), numbers[0][2])]

    def do_size(self, things: Any) -> Any:
        return len(things)

    def do_listValue(self, result: Any) -> Any:  # noqa: N802
        if isinstance(result, str):
            return [("string", result)]
        if isinstance(result, int):
            return [("number", float(result), "count")]
        return sorted(listed(result), key=text)


SHAPES = {
    "singleton": ["V"],
    "reverse": ["S"],
    "domain": ["S"],
    "getProperty": ["[LV]S"],
    "filter": ["LS", "LSS[LV]"],
    "ensureNumericProperty": ["S"],
    "ensureNumericEntity": ["[LV]"],
    "superlative": ["LSS"],
    "countSuperlative": ["LSS[LN]?"],
    "countComparative": ["LSSV[LN]?"],
    "concat": ["LL", "VV"],
    "aggregate": ["SL"],
    ".size": ["L"],
    "listValue": ["[LVSI]"],
}


def letter(argument: Any) -> str:
    return {list: "L", tuple: "V", str: "S", int: "I", type(None): "N"}[type(argument)]


def listed(argument: Any) -> list[Any]:
    return argument if isinstance(argument, list) else [argument]


def related(a: float, sign: str, b: float) -> bool:
    return {"=": a == b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign]

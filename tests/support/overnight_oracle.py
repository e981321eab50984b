"""A naive executor of the Overnight language, as an oracle for the real one.

It substitutes arguments in the program, recurses, evaluates every occurrence of an argument, and scans all facts
for every look-up. Values are tuples: ("name", ID), ("number", MAGNITUDE, UNIT), ("date", Y, M, D), ("time", H, M),
("boolean", "true"), ("string", S). Lists are lists, strings are str, sizes are int and null is None.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any


class Error(Exception):
    """The denotation of the program is an error."""


class FuelExhausted(Exception):
    """The program takes too many steps for the oracle."""


def require(condition: bool) -> None:
    if not condition:
        raise Error


def parse(text: str) -> Any:
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()

    def one() -> Any:
        require(bool(tokens))
        token = tokens.pop(0)
        require(token != ")")
        if token != "(":
            return token
        items = []
        while tokens and tokens[0] != ")":
            items.append(one())
        require(bool(tokens))
        tokens.pop(0)
        return tuple(items)

    tree = one()
    require(not tokens)
    return tree


def value(tree: Any) -> Any:
    if isinstance(tree, str):
        return ("name", tree)
    require(len(tree) > 1 and all(isinstance(item, str) for item in tree))
    if tree[0] == "number":
        require(
            len(tree) in (2, 3)
            and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", tree[1], re.A) is not None
        )
        require(math.isfinite(float(tree[1])))
        return ("number", float(tree[1]), tree[2] if len(tree) == 3 else "fb:en.unitless")
    require((tree[0], len(tree)) in (("date", 4), ("time", 3)))
    require(all(re.fullmatch(r"[-+]?\d+", item, re.A) for item in tree[1:]))
    require(all(-(2**31) <= int(item) < 2**31 for item in tree[1:]))
    return (tree[0], *map(int, tree[1:]))


def type_of(x: Any) -> str:
    require(x[0] != "string")
    if x[0] == "number":
        return str(x[2]) + "_number"
    if x[0] != "name":
        return "en." + str(x[0])
    pieces = x[1].split(".")
    type_pieces = pieces[:-2] if pieces[-1][:1] == "_" else pieces[:-1]
    require(".".join(type_pieces) != "")
    return ".".join(type_pieces)


def numeric(kind: str) -> bool:
    return kind[-7:] == "_number" or kind == "en.date" or kind == "en.time"


def degree(x: Any) -> float:
    require(x[0] in ("number", "date", "time"))
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
        """Return the text of the denotation, or `error`."""
        self.fuel = fuel
        try:
            result, is_list_value = self.evaluate(parse(program))
            require(is_list_value)
        except Error:
            return "error"
        return "(" + " ".join(["list", *map(text, result)]) + ")"

    def evaluate(self, tree: Any) -> tuple[Any, bool]:
        """Return a result, and whether it is a result of `listValue`."""
        self.fuel -= 1
        if self.fuel < 0:
            raise FuelExhausted
        require(tree != ())
        if isinstance(tree, tuple) and isinstance(tree[0], tuple):
            head = tree[0]
            require(len(tree) == 2 and len(head) == 3 and head[0] == "lambda" and isinstance(head[1], str))
            written = substitute(head[2], head[1], tree[1])
            self.fuel -= size(written) // 20
            return self.evaluate(written)
        if isinstance(tree, tuple) and tree[0] == "call":
            require(len(tree) > 1 and isinstance(tree[1], str))
            arguments = [self.evaluate(item)[0] for item in tree[2:]]
            return self.call(tree[1], arguments), tree[1] == "listValue"
        if isinstance(tree, tuple) and tree[0] == "string":
            require(len(tree) == 2 and isinstance(tree[1], str))
            return tree[1], False
        return value(tree), False

    def values(self, x: Any, p: str) -> list[Any]:
        require(any(x in (e, v) for e, _, v in self.facts))
        require(any(p in (q, "!" + q) for _, q, _ in self.facts))
        require(p in self.signatures and type_of(x) == self.signatures[p][0])
        forwards = [v for e, q, v in self.facts if (e, q) == (x, p)]
        return forwards + [e for e, q, v in self.facts if (v, "!" + q) == (x, p)]

    def check_second(self, p: str, references: list[Any]) -> None:
        for x in references:
            require(p in self.signatures and type_of(x) == self.signatures[p][1])

    def count(self, x: Any, p: str, restrictors: list[Any] | None) -> int:
        return len([v for v in self.values(x, p) if restrictors is None or v in restrictors])

    def test(self, values: list[Any], sign: str, references: list[Any]) -> bool:
        if sign in ("=", "!="):
            return any(v == r for v in values for r in references) == (sign == "=")
        if sign not in ("<", "<=", ">", ">="):
            return False
        ours, theirs = [degree(v) for v in values], [degree(r) for r in references]
        return any(compare(a, sign, b) for a in ours for b in theirs)

    def call(self, name: str, arguments: list[Any]) -> Any:
        shape = "".join(letter(argument) for argument in arguments)
        require(any(re.fullmatch(pattern, shape) for pattern in SHAPES.get(name, [])))
        method = getattr(self, "do_" + name.strip("."))
        return method(*arguments)

    def do_singleton(self, v: Any) -> Any:
        return [v]

    def do_reverse(self, p: str) -> Any:
        return p[1:] if p[0:1] == "!" else "!" + p

    def do_domain(self, p: str) -> Any:
        require(p in self.signatures)
        return self.do_getProperty([("name", self.signatures[p][0])], "!type")

    def do_getProperty(self, entities: Any, p: str) -> Any:  # noqa: N802
        found: list[Any] = []
        for x in as_list(entities):
            found += [v for v in dict.fromkeys(self.values(x, p)) if v not in found]
        require(found != [])
        return found

    def do_filter(self, entities: Any, p: str, sign: str = "=", references: Any = ("boolean", "true")) -> Any:
        self.check_second(p, as_list(references))
        return [x for x in entities if x[0] == "name" and self.test(self.values(x, p), sign, as_list(references))]

    def do_ensureNumericProperty(self, p: str) -> Any:  # noqa: N802
        require(p in self.signatures and numeric(self.signatures[p][1]))
        return p

    def do_ensureNumericEntity(self, entities: Any) -> Any:  # noqa: N802
        require(as_list(entities) != [] and numeric(type_of(as_list(entities)[0])))
        return as_list(entities)

    def do_superlative(self, entities: Any, mode: str, p: str) -> Any:
        choose = max if mode == "max" else min
        degrees = [[degree(v) for v in self.values(x, p)] for x in entities]
        return self.best(entities, mode, [choose(many) if many else math.nan for many in degrees])

    def do_countSuperlative(self, entities: Any, mode: str, p: str, restrictors: Any = None) -> Any:  # noqa: N802
        self.check_second(p, restrictors or [])
        require(p in self.signatures and not numeric(self.signatures[p][1]))
        return self.best(entities, mode, [self.count(x, p, restrictors) for x in entities])

    def best(self, entities: list[Any], mode: str, scores: list[float]) -> Any:
        if not entities:
            return None
        if math.isnan(scores[0]):
            return [entities[0]]
        real = [score for score in scores if not math.isnan(score)]
        record = max(real) if mode == "max" else min(real)
        return [x for x, score in zip(entities, scores, strict=True) if score == record]

    def do_countComparative(self, entities: Any, p: str, sign: str, n: Any, restrictors: Any = None) -> Any:  # noqa: N802
        self.check_second(p, restrictors or [])
        require(p in self.signatures and not numeric(self.signatures[p][1]))
        require(n[0] == "number")
        require(not entities or sign in ("=", "<", ">", "<=", ">="))
        return [x for x in entities if compare(self.count(x, p, restrictors), sign, n[1])]

    def do_concat(self, first: Any, second: Any) -> Any:
        require(first != second)
        for x in as_list(first):
            for y in as_list(second):
                require(type_of(x) == type_of(y))
        return as_list(first) + as_list(second)

    def do_aggregate(self, mode: str, numbers: Any) -> Any:
        require(mode in ("sum", "avg") and numbers != [] and all(x[0] == "number" for x in numbers))
        total = 0.0
        for x in numbers:
            total += x[1]
        require(math.isfinite(total))
        return [("number", total / (len(numbers) if mode == "avg" else 1), numbers[0][2])]

    def do_size(self, entities: Any) -> Any:
        return len(entities)

    def do_listValue(self, result: Any) -> Any:  # noqa: N802
        if isinstance(result, str):
            return [("string", result)]
        if isinstance(result, int):
            return [("number", float(result), "count")]
        return sorted(as_list(result), key=text)


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


def as_list(argument: Any) -> list[Any]:
    return argument if isinstance(argument, list) else [argument]


def compare(a: float, sign: str, b: float) -> bool:
    return {"=": a == b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign]

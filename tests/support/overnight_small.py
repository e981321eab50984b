"""A small Overnight world with every kind of value, and random programs over it."""

from random import Random
from typing import Any

from fewparse.datasets.overnight.world import World

SMALL: dict[str, Any] = {
    "properties": {
        "type": ["en.person", "en"],
        "age": ["en.person", "en.year_number"],
        "born": ["en.person", "en.date"],
        "wakes": ["en.person", "en.time"],
        "friend": ["en.person", "en.person"],
        "city": ["en.person", "en.city"],
        "vip": ["en.person", "en.boolean"],
        "unused": ["en.person", "en.city"],
    },
    "objects": {
        "en.city.rome": {"type": ["en.city"]},
        "en.city.oslo": {"type": ["en.city"]},
        "en.person.ann": {
            "type": ["en.person"],
            "age": ["(number 30 en.year)"],
            "born": ["(date 2004 -1 -1)"],
            "wakes": ["(time 7 30)"],
            "friend": ["en.person.bob", "en.person.bob", "en.person.cy"],
            "city": ["en.city.rome"],
            "vip": ["(boolean true)"],
        },
        "en.person.bob": {
            "type": ["en.person"],
            "age": ["(number 9 en.year)", "(number 30 en.year)"],
            "born": ["(date 2004 5 6)"],
            "wakes": ["(time 7 0)"],
            "friend": ["en.person.cy"],
            "city": ["en.city.rome", "en.city.oslo"],
        },
        "en.person.cy": {
            "type": ["en.person"],
            "age": ["(number 10.5 en.year)"],
            "born": ["(date 2005 1 2)"],
            "wakes": ["(time 12 0)"],
            "city": ["en.city.oslo"],
            "vip": ["(boolean true)"],
        },
        "en.person.dee": {"type": ["en.person"], "friend": ["en.person.ann", "en.person.dee"]},
    },
}
SMALL_WORLD = World.from_data(SMALL)

PEOPLE = "(call getProperty (call singleton en.person) (string !type))"
VARIABLES = ("x", "y", "s")
FORWARDS = ("type", "age", "born", "wakes", "friend", "city", "vip", "unused")
PROPERTIES = (*FORWARDS, *(f"!{name}" for name in FORWARDS), "nonsense", "!")
SIGNS = ("=", "!=", "<", "<=", ">", ">=", "~")
VALUES = (
    "en.person.ann",
    "en.person.bob",
    "en.person.dee",
    "en.person.nobody",
    "en.city.rome",
    "en.city.oslo",
    "en.person",
    "en.city",
    "dotless",
    "(number 10 en.year)",
    "(number 30 en.year)",
    "(number 2)",
    "(number 1)",
    "(number -0.0004 en.year)",
    "(number 1e400)",
    "(date 2004 -1 -1)",
    "(date 2004 5 6)",
    "(time 7 0)",
    "(time 12 59)",
    "(boolean true)",
)


def random_program(random: Random) -> str:
    """Return a random program, mostly without errors."""
    return f"(call listValue {random_term(random, random.choice(['list'] * 8 + ['size', 'value', 'name']), 4)})"


def random_term(random: Random, kind: str, depth: int) -> str:
    """Return a random term of a kind, occasionally of another one."""
    chance = random.random()
    if chance < 0.02:
        kind = random.choice(["list", "value", "name", "sign", "mode", "size"])
    if chance < 0.04 or (chance < 0.2 and depth < 4):
        return f"(var {random.choice(VARIABLES)})"
    if chance > 0.88 and depth:
        return random_application(random, kind, depth - 1)

    def term(kind_of_term: str) -> str:
        return random_term(random, kind_of_term, depth - 1)

    match kind:
        case "value":
            return random.choice(VALUES)
        case "sign":
            return f"(string {random.choice(SIGNS)})"
        case "mode":
            return f"(string {random.choice(['min', 'max', 'max', 'sum', 'avg'])})"
        case "name":
            plain = f"(string {random.choice(PROPERTIES)})"
            wrapped = f"(call {random.choice(['reverse', 'ensureNumericProperty'])} {plain})"
            return random.choice([plain, plain, wrapped])
        case "size":
            return f"(call .size {term('list')})"
    if depth <= 0:
        return random.choice([PEOPLE, PEOPLE, f"(call singleton {random.choice(VALUES)})"])
    either = random.choice(["list", "value"])
    shapes = {
        "getProperty": [either, "name"],
        "filter": random.choice([["list", "name"], ["list", "name", "sign", either]]),
        "superlative": ["list", "mode", "name"],
        "countSuperlative": ["list", "mode", "name", *random.choice([[], ["list"]])],
        "countComparative": ["list", "name", "sign", "value", *random.choice([[], ["list"]])],
        "concat": [either, either],
        "aggregate": ["mode", "list"],
        "ensureNumericEntity": [either],
        "domain": ["name"],
        "singleton": ["value"],
        "listValue": [random.choice(["list", "name", "size"])],
    }
    name = random.choice([*shapes, "getProperty", "filter", "filter"])
    return f"(call {name} {' '.join(term(argument) for argument in shapes[name])})"


def random_application(random: Random, kind: str, depth: int) -> str:
    """Return the application of a lambda, which is written in place or passed as an argument."""
    name, other = random.choice(VARIABLES), random.choice(VARIABLES)
    argument = random_term(random, random.choice([kind, "list"]), depth)
    function = f"(lambda {name} {random_term(random, kind, depth)})"
    if random.random() < 0.3:
        return f"((lambda {other} ((var {other}) {argument})) {function})"
    return f"({function} {argument})"


def random_lambdas(random: Random, depth: int, bound: tuple[str, ...] = ()) -> str:
    """Return a random term that consists mostly of lambdas and variables; `bound` are the variables in scope."""
    mark = f"(call singleton (number {random.randrange(10_000)}))"
    name = random.choice(VARIABLES)
    used = random.choice(bound) if bound and random.random() < 0.9 else name
    chance = random.random()
    if depth <= 0:
        return f"(var {used})" if bound and chance < 0.8 else mark
    if chance < 0.25:
        parts = random_lambdas(random, depth - 1, bound), random_lambdas(random, depth - 1, bound)
        return f"(call concat (call concat {parts[0]} {mark}) {parts[1]})"
    argument = random_lambdas(random, depth - 2, VARIABLES if random.random() < 0.3 else bound)
    if chance < 0.3:
        return f"((var {used}) {argument})"
    if chance < 0.4:
        argument = f"(lambda {random.choice(VARIABLES)} {argument})"
    return f"((lambda {name} {random_lambdas(random, depth - 1, (*bound, name))}) {argument})"

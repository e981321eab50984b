"""The chart parser accepts exactly the derived texts; its failures give the longest viable prefix."""

import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from fewparse.grammar.parsing.chart import Chart, ChartParser, ParseFailure
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text
from support.campaign import examples
from support.earley import Recogniser
from support.random_grammars import ALPHABET, UNDEFINED, candidates, heights, plain_grammars, seeds
from support.sample_grammars import lark_language, strings

on_many = examples(200)
SHORT = list(strings("ab", 3)) + list(strings(ALPHABET, 2))


def lark_oracle(grammar: Grammar) -> Callable[[str], bool]:
    """Membership by Lark; it does not support undefined names, empty literals or empty classes."""
    names = {name: f"n{number}" for number, name in enumerate(heights(grammar))}
    if grammar.start not in names:
        return lambda text: False
    lines = []
    for name, lark_name in names.items():
        productions = [p for p in grammar.rules[name] if all(is_known(symbol, names) for symbol in p)]
        written = dict.fromkeys(" ".join(lark_symbol(s, names) for s in p if s != Text("")) for p in productions)
        lines.append(f"{lark_name}: " + " | ".join(written))
    return lark_language("\n".join(lines), names[grammar.start])


def is_known(symbol: Symbol, names: dict[str, str]) -> bool:
    return symbol.name in names if isinstance(symbol, Ref) else symbol != Chars(())


def lark_symbol(symbol: Symbol, names: dict[str, str]) -> str:
    if isinstance(symbol, Ref):
        return names[symbol.name]
    if isinstance(symbol, Text):
        return f'"{symbol.text}"'
    return "/[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in symbol.ranges) + "]/"


@given(plain_grammars(), seeds)
@on_many
def test_accepts_exactly_what_lark_accepts(grammar: Grammar, rng: random.Random) -> None:
    parser, lark = ChartParser(grammar), lark_oracle(grammar)
    for text in [*candidates(grammar, rng, count=3), *rng.sample(SHORT, 12), ""]:
        assert parser.accepts(text) == lark(text), text


def oracle(grammar: Grammar) -> Recogniser | None:
    """The byte-level recogniser, which needs a productive start symbol."""
    return Recogniser(grammar) if grammar.start in heights(grammar) else None


@given(plain_grammars(), seeds)
@on_many
def test_accepts_exactly_what_the_byte_recogniser_accepts(grammar: Grammar, rng: random.Random) -> None:
    parser, recogniser = ChartParser(grammar), oracle(grammar)
    for text in [*candidates(grammar, rng), *SHORT]:
        assert parser.accepts(text) == (recogniser is not None and recogniser.accepts(text)), text


@given(plain_grammars(), seeds)
@on_many
def test_a_failure_gives_the_longest_viable_prefix_and_all_continuations(
    grammar: Grammar, rng: random.Random
) -> None:
    parser, recogniser = ChartParser(grammar), oracle(grammar)
    for text in [*candidates(grammar, rng), *rng.sample(SHORT, 10)]:
        result = parser.parse(text)
        if isinstance(result, Chart):
            continue
        if recogniser is None:
            assert result == ParseFailure(text, 0, ())
            continue
        assert result.at == longest_viable(recogniser, text)
        following = {char for char in ALPHABET if recogniser.viable((text[: result.at] + char).encode())}
        for char in following:
            assert result.others or any(includes(expected, char) for expected in result.expected)
        prefix = text[: result.at].encode()
        assert bool(result.expected) == any(recogniser.viable(prefix + bytes([byte])) for byte in range(256))
        if result.at < len(text):
            assert not any(includes(expected, text[result.at]) for expected in result.expected)


def longest_viable(recogniser: Recogniser, text: str) -> int:
    return next(length for length in range(len(text), -1, -1) if recogniser.viable(text[:length].encode()))


def includes(expected: str, char: str) -> bool:
    """Whether an expected description includes a character."""
    kind, bracket, inner = expected.removesuffix("]").partition("[")
    if not bracket:
        return expected == "anything" or expected[1] == char
    ranges = zip(inner, inner[1:], inner[2:], strict=False)
    listed = char in inner or any(low <= char <= high for low, dash, high in ranges if dash == "-")
    return listed == (kind == "one of ")


@given(plain_grammars(), seeds)
@on_many
def test_parsing_a_text_does_not_affect_the_next(grammar: Grammar, rng: random.Random) -> None:
    parser = ChartParser(grammar)
    inputs = [*candidates(grammar, rng, count=3), *rng.sample(SHORT, 8)]
    first = [parser.parse(text) for text in inputs]
    order = rng.sample(range(len(inputs)), len(inputs))
    assert [parser.parse(inputs[i]) for i in order] == [first[i] for i in order]
    assert [ChartParser(grammar).parse(inputs[i]) for i in order] == [first[i] for i in order]


def chart(grammar: Grammar, text: str) -> Chart:
    result = ChartParser(grammar).parse(text)
    assert isinstance(result, Chart)
    return result


def failure(grammar: Grammar, text: str) -> ParseFailure:
    result = ChartParser(grammar).parse(text)
    assert isinstance(result, ParseFailure)
    return result


def choice(*productions: Production) -> Grammar:
    return Grammar({"start": productions})


def test_the_chart_has_every_constituent() -> None:
    found = chart(choice((Ref("start"), Ref("start")), (Text("a"),)), "aaa")
    assert all(found.spans("start", begin, end) for begin in range(3) for end in range(begin + 1, 4))
    assert not found.spans("start", 1, 1)


def test_the_empty_text_is_derived_if_the_start_is_nullable() -> None:
    assert chart(choice(()), "").spans("start", 0, 0)
    assert chart(choice((Text(""), Ref("start")), (Text(""),)), "").spans("start", 0, 0)
    assert failure(choice((Text("a"),)), "").reason == "ends too early; expected 'a'"


def test_a_failure_shows_the_rest_of_literals() -> None:
    grammar = choice((Text("say "), Ref("what")), (Text("stop"),)).with_rules(
        {"what": ((Text("hello"),), (Chars.of([(48, 57)]),), (Text("\n"),))}
    )
    assert failure(grammar, "sit").reason == "is not derived from character 2 on; expected 'stop' or 'say '"
    assert failure(grammar, "say !").reason == (
        "is not derived from character 5 on; expected 'hello' or '\\n' or one of [0-9]"
    )
    assert failure(grammar, "stop it").reason == "is not derived from character 5 on"


def test_a_failure_shows_a_few_of_many_continuations() -> None:
    many = failure(choice(*((Text(chr(code)),) for code in range(97, 123))), "1")
    assert (many.expected, many.others) == (tuple(repr(char) for char in "abcdefgh"), 18)
    assert many.reason.endswith("or 'h' or 18 others")


def test_a_failure_shows_the_most_similar_continuation_first() -> None:
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "Today", "Tomorrow")
    grammar = choice(*((Text(f"on {day}"),) for day in days))
    assert failure(grammar, "on wednesday").expected[0] == "'Wednesday'"
    assert failure(grammar, "on Tusday").reason == "is not derived from character 6 on; expected 'Tuesday'"


def test_a_failure_omits_literals_that_extend_another() -> None:
    grammar = choice(*((Text(text),) for text in ("go on", "go", "gone", "good", "stay")))
    assert failure(grammar, "!").expected == ("'go'", "'stay'")
    assert failure(grammar, "go!").expected == ("' on'", "'ne'", "'od'")


def test_a_failure_truncates_literals_and_describes_classes_briefly() -> None:
    assert failure(choice((Text("a" * 1_000),)), "b").expected == (f"'{'a' * 39}…'",)
    quotes, newline = Chars.of([(ord('"'), ord('"'))]), Chars.of([(10, 10), (48, 57)])
    assert failure(choice((quotes.negated(),)), '"').expected == ('anything but ["]',)
    assert failure(choice((Chars(()).negated(),)), "").expected == ("anything",)
    assert failure(choice((newline,)), "a").expected == ("one of [\\n0-9]",)


@given(st.sampled_from(["", "a", "😀"]))
def test_a_grammar_that_derives_nothing_rejects_every_text(text: str) -> None:
    nothing = [
        Grammar({}),
        Grammar({"other": ((Text("a"),),)}),
        choice((Ref("start"),), (Text("a"), Ref(UNDEFINED)), (Chars(()),)),
    ]
    assert [failure(grammar, text) for grammar in nothing] == [ParseFailure(text, 0, ())] * 3


def test_useless_rules_are_not_expected() -> None:
    grammar = choice((Text("a"), Ref(UNDEFINED)), (Text("b"),)).with_rules({"unused": ((Text("c"),),)})
    assert failure(grammar, "a") == ParseFailure("a", 0, ("'b'",))

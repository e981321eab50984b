"""S-expressions: trees with offsets, one compact form, calls with signatures, and errors with a caret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import GrammarError
from fewparse.grammar.induction.sexpr import Atom, Call, Form, Node, Parameter, compact, parse_call, read_program

WORDS = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters='()"'), min_size=1, max_size=4)
TEXTS = st.text(st.sampled_from('ab ()\\"\n'), max_size=4).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
BLANKS = st.text(st.sampled_from(" \t\n"), min_size=1, max_size=3)


def call_of(program: str) -> Call:
    tree = read_program(program)
    assert isinstance(tree, Form)
    return parse_call(tree, ["call"])


def offsets(program: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    agenda: list[Node] = [read_program(program)]
    while agenda:
        node = agenda.pop(0)
        found.append((node.text if isinstance(node, Atom) else node.opening, node.at))
        agenda += [] if isinstance(node, Atom) else node.items
    return sorted(found, key=lambda pair: pair[1])


def test_every_node_has_its_offset() -> None:
    assert offsets('(f  "a b" #(Number 1.0))') == [
        ("(", 0),
        ("f", 1),
        ('"a b"', 4),
        ("#(", 10),
        ("Number", 12),
        ("1.0", 19),
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (" ( f\n a\t( g ) ) ", "(f a (g))"),
        ("(f(g)(h))", "(f (g) (h))"),
        ('(f"a  b"c)', '(f "a  b" c)'),
        ("( )", "()"),
        ("( # ( a ))", "(# (a))"),
        ('(f #(String "a") \'(b) ^(c) x#(d))', '(f #(String "a") \'(b) ^(c) x# (d))'),
        (r'(f "say \"hi\" \\")', r'(f "say \"hi\" \\")'),
        (" 3 ", "3"),
    ],
)
def test_the_compact_form_has_one_blank_between_parts(written: str, expected: str) -> None:
    assert compact(read_program(written)) == expected
    assert compact(read_program(expected)) == expected


@given(st.recursive(WORDS | TEXTS, lambda inner: st.lists(inner, max_size=4), max_leaves=20), BLANKS)
def test_whitespace_does_not_matter(tree: object, blanks: str) -> None:
    def written(node: object, blank: str, inside: str) -> str:
        if isinstance(node, list):
            return f"({inside}{blank.join(written(item, blank, inside) for item in node)}{inside})"
        return str(node)

    plain = written(tree, " ", "")
    prefixed = any(sign + "(" in written(tree, "", "") for sign in "#'^")
    if not prefixed:
        assert compact(read_program(written(tree, blanks, blanks))) == plain
    assert compact(read_program(plain)) == plain


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("(f a 1)", ("(f", [("", "1"), ("", "2")], ["a", "1"])),
        ("(call f a)", ("(call f", [("", "1")], ["a"])),
        ("(call f)", ("(call f", [], [])),
        ("(call)", ("(call", [], [])),
        ("()", ("(", [], [])),
        ("(:results x)", ("(:results", [("", "1")], ["x"])),
        ("#(Number 1)", ("#(Number", [("", "1")], ["1"])),
        ("(f :a 1 :b (g))", ("(f", [(":a", ":a"), (":b", ":b")], ["1", "(g)"])),
        ("(f x :a 1 y)", ("(f", [("", "1"), (":a", ":a"), ("", "2")], ["x", "1", "y"])),
        ("(f :flag :a 1 :last)", ("(f", [(":flag", ""), (":a", ":a"), (":last", "")], ["1"])),
        ("((lambda s b) x)", ("(", [("", "operator"), ("", "1")], ["(lambda s b)", "x"])),
        ("(call (g) x)", ("(call", [("", "operator"), ("", "1")], ["(g)", "x"])),
        ('("a" x)', ("(", [("", "operator"), ("", "1")], ['"a"', "x"])),
    ],
)
def test_a_form_is_split_into_function_and_arguments(
    program: str, expected: tuple[str, list[tuple[str, str]], list[str]]
) -> None:
    call = call_of(program)
    head, signature, values = expected
    assert call.head == head
    assert call.signature == tuple(Parameter(*parameter) for parameter in signature)
    assert [compact(value) for value in call.values] == values


@pytest.mark.parametrize(
    ("program", "message", "line", "column"),
    [
        ("", "the program is empty", 1, 1),
        ("  \n ", "the program is empty", 1, 1),
        ("(f (g x)", "this ( is never closed", 1, 1),
        ("(f\n #(g x)", "this ( is never closed", 1, 1),
        ("(f #(g x", "this #( is never closed", 1, 4),
        ("(f x))", "this ) has no matching (", 1, 6),
        ("(f) (g)", "a program is one expression, but a second one starts here", 1, 5),
        ("a b", "a program is one expression, but a second one starts here", 1, 3),
        ('(f\n  "abc)', "this string is never closed", 2, 3),
        ('(f "abc\\")', "this string is never closed", 1, 4),
    ],
)
def test_an_error_has_line_column_and_caret(program: str, message: str, line: int, column: int) -> None:
    with pytest.raises(GrammarError) as caught:
        read_program(program, "program 7")
    assert str(caught.value).startswith(f"program 7:{line}:{column}: {message}\n")
    assert str(caught.value).splitlines()[2] == " " * (4 + column - 1) + "^"


def test_the_depth_is_not_limited() -> None:
    deep = "(f " * 100_000 + "x" + ")" * 100_000
    assert compact(read_program(deep)) == deep
    with pytest.raises(GrammarError, match="never closed"):
        read_program(deep[:-1])


@given(st.text(st.sampled_from("()\"\\#'^: a\n"), max_size=12))
def test_any_text_is_parsed_or_is_a_grammar_error(text: str) -> None:
    try:
        tree = read_program(text)
    except GrammarError:
        return
    assert compact(read_program(compact(tree))) == compact(tree)

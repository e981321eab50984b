"""Drawn derivation trees show every node and every text, in order and without overlaps."""

import random
from itertools import islice, pairwise
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fewparse.grammar.analysis.derivation import DerivationTree, from_derivation, from_parse_tree, text_of
from fewparse.grammar.analysis.sampling import min_depth, sample_pairs
from fewparse.grammar.analysis.tree_svg import MARGIN, MAX_WIDTH, quote, tree_svg, tree_text
from fewparse.grammar.parsing.forest import Forest, ForestParser
from fewparse.grammar.readers.ebnf import read_grammar
from fewparse.grammar.readers.scfg import read_scfg_text
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.grammar.translation.translator import Translator
from support.random_grammars import candidates, plain_grammars, seeds, synchronous_grammars

SVG = "{http://www.w3.org/2000/svg}"
GREETING = """
start -> greeting , "(" greeting ")"
greeting -> "hello " who , "greet " who
who -> "you" , "you"
who -> name , name
name -> /[a-z]/ name
name -> /[a-z]/
"""
texts = st.text(max_size=40)
trees = st.recursive(
    st.builds(DerivationTree, texts, st.lists(texts, max_size=2).map(tuple)),
    lambda inner: st.builds(
        DerivationTree, texts, st.lists(inner | texts, max_size=4).map(tuple), st.none() | st.text(max_size=120)
    ),
    max_leaves=25,
)


class Rectangle(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float


def rectangles(svg: str) -> list[Rectangle]:
    found = []
    for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        found.append(Rectangle(x, x + width, y, y + height))
    return found


def count(tree: DerivationTree | str) -> int:
    return 1 if isinstance(tree, str) else 1 + sum(map(count, tree.children or ("",)))


def first_tree(grammar: Grammar, text: str) -> DerivationTree:
    forest = ForestParser(grammar).parse(text)
    assert isinstance(forest, Forest)
    return from_parse_tree(next(forest.trees()))


def best_derivation(grammar: SynchronousGrammar, utterance: str) -> DerivationTree:
    return from_derivation(Translator(grammar).to_program(utterance).k_best[0])


@settings(max_examples=150)
@given(trees)
def test_boxes_do_not_overlap_and_are_inside_the_picture(tree: DerivationTree) -> None:
    svg = tree_svg(tree)
    boxes = rectangles(svg)
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert len(boxes) == count(tree)
    assert all(b.left > MARGIN - 0.2 and b.right < width - MARGIN + 0.2 for b in boxes)
    assert all(b.top > 0 and b.bottom < height for b in boxes)
    assert float(root.attrib["width"]) <= MAX_WIDTH
    levels: dict[float, list[Rectangle]] = {}
    for box in boxes:
        levels.setdefault(box.top, []).append(box)
    for level in levels.values():
        ordered = sorted(level)
        assert level == ordered, "from left to right"
        assert all(one.right < other.left for one, other in pairwise(ordered))
    tops = sorted(levels)
    for top, below in pairwise(tops):
        assert max(box.bottom for box in levels[top]) < below


@settings(max_examples=60)
@given(trees)
def test_a_parent_is_centred_over_its_children(tree: DerivationTree) -> None:
    boxes = rectangles(tree_svg(tree))
    middles = iter([(box.left + box.right) / 2 for box in boxes])

    def check(part: DerivationTree | str) -> float:
        own = next(middles)
        if isinstance(part, DerivationTree):
            inner = [check(child) for child in part.children or ("",)]
            assert own == pytest.approx((inner[0] + inner[-1]) / 2, abs=0.2)
        return own

    check(tree)


@settings(max_examples=150)
@given(trees)
def test_the_terminal_shows_a_line_for_each_node(tree: DerivationTree) -> None:
    def parts(part: DerivationTree | str) -> int:
        if isinstance(part, str) or not part.children:
            return 1
        alone = len(part.children) == 1 and isinstance(part.children[0], str)
        return 1 if alone else 1 + sum(map(parts, part.children))

    shown = tree_text(tree)
    assert shown.count("\n") + 1 == parts(tree)
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_a_derivation_in_the_terminal() -> None:
    grammar = read_grammar('start: "(" word rest ")"\nword: /[a-z]+/\nrest: " " word rest |')
    assert tree_text(first_tree(grammar, "(greet you)")) == "\n".join(
        [
            "start",
            '├─ "("',
            "├─ word",
            '│  └─ word__2 "greet"',
            "├─ rest",
            '│  ├─ " "',
            "│  ├─ word",
            "│  │  └─ word__2",
            "│  │     ├─ word__2",
            '│  │     │  ├─ word__2 "y"',
            '│  │     │  └─ "o"',
            '│  │     └─ "u"',
            '│  └─ rest ""',
            '└─ ")"',
        ]
    )


def test_a_derivation_of_both_sides_shows_the_translation_of_each_node() -> None:
    grammar = read_scfg_text(GREETING)
    tree = best_derivation(grammar, "hello claire")
    assert tree_text(tree) == "\n".join(
        [
            "start  ⇒ (greet claire)",
            "└─ greeting  ⇒ greet claire",
            '   ├─ "hello "',
            "   └─ who  ⇒ claire",
            '      └─ name "claire"',
        ]
    )
    svg = tree_svg(tree)
    notes = [
        text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text") if text.attrib["class"] == "note"
    ]
    assert notes == ["(greet claire)", "greet claire", "claire"]


def test_an_optional_symbol_is_labelled_as_written() -> None:
    grammar = read_scfg_text('start -> "a" more? , more? "x"\nmore -> " b" , "y"')
    assert tree_text(best_derivation(grammar, "a b")) == "\n".join(
        ["start  ⇒ yx", '├─ "a"', "└─ more?  ⇒ y", '   └─ more " b"']
    )


@settings(max_examples=150)
@given(plain_grammars(), seeds)
def test_any_derivation_is_shown_with_its_whole_text(grammar: Grammar, rng: random.Random) -> None:
    parser = ForestParser(grammar)
    for text in candidates(grammar, rng, count=3, max_length=10):
        forest = parser.parse(text)
        for parse_tree in islice(forest.trees(), 3) if isinstance(forest, Forest) else ():
            tree = from_parse_tree(parse_tree)
            assert text_of(tree) == text
            assert tree.label == grammar.start
            assert len(rectangles(tree_svg(tree))) == count(tree)


@settings(max_examples=100)
@given(synchronous_grammars(), st.integers(0, 1_000))
def test_any_translation_is_shown_with_its_source_and_its_target(grammar: SynchronousGrammar, seed: int) -> None:
    translator = Translator(grammar)
    assume(min_depth(grammar) is not None)
    for pair in sample_pairs(grammar, 3, seed, depth=3):
        for found in (translator.to_program(pair.utterance, 3), translator.to_utterance(pair.program, 3)):
            for derivation in found.k_best:
                tree = from_derivation(derivation)
                assert text_of(tree) == found.source
                assert tree.translation == derivation.text


def test_nested_nodes_of_one_character_each_are_collapsed() -> None:
    left, right = 'start: start /[a-z]/ | ""', "start: /[a-z]/ start | /[a-z]/"
    named = 'start: char start |\nchar: /[a-z]/ | "\\\\" /./'
    for source, text in [(left, "letters"), (right, "letters"), (named, 'a"\\"b\\\\c'.replace('"', "", 1))]:
        tree = first_tree(read_grammar(source), text)
        assert tree.children == (text,), source


def test_nodes_with_more_than_a_character_are_not_collapsed() -> None:
    grammar = read_grammar('start: start "+" start | /[a-z]/')
    shown = tree_text(first_tree(grammar, "a+b+c+d+e+f"))
    assert shown.count('"+"') == 5
    ambiguous = read_grammar('start: start start | "a"')
    assert tree_text(first_tree(ambiguous, "aaaaaa")).count('"a"') == 6


def test_characters_with_a_different_translation_are_not_collapsed() -> None:
    grammar = read_scfg_text('start -> "a" start | "b" start , "1" start\nstart -> "c" , "2"')
    assert tree_text(best_derivation(grammar, "abababc")).count("start") == 7


def test_a_literal_is_quoted_and_invisible_characters_are_escaped() -> None:
    assert quote('a "b"\\\n\t\0\u2028é😀') == '"a \\"b\\"\\\\\\n\\t\\x00\\u2028é😀"'
    svg = tree_svg(DerivationTree("<&>", ('<a href="x">&amp;\x01\ufffe',), "]]>\x00"))
    shown = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert shown[:2] == ["<&>", "]]>\\x00"]
    assert "".join(map(str, shown[2:])) == '"<a href=\\"x\\">&amp;\\x01\\ufffe"'


def test_a_long_literal_is_wrapped_and_complete_in_its_title() -> None:
    words = " ".join(f"word{number}" for number in range(15))
    root = ElementTree.fromstring(tree_svg(DerivationTree("start", (words, "x" * 400))))
    lines = [text.text or "" for text in root.iter(f"{SVG}text")][1:]
    assert "".join(lines[:4]) == f'"{words}"'
    assert all(len(line) <= 28 for line in lines)
    assert lines[-1].endswith("…")
    assert [title.text for title in root.iter(f"{SVG}title")][1:] == [f'"{words}"', f'"{"x" * 400}"']


def test_wide_characters_get_wide_boxes() -> None:
    narrow, wide = (rectangles(tree_svg(DerivationTree("a", (text * 10,))))[1] for text in "ab漢"[1:])
    assert wide.right - wide.left > 1.5 * (narrow.right - narrow.left)


def test_a_very_wide_picture_is_scaled_down() -> None:
    root = ElementTree.fromstring(tree_svg(DerivationTree("start", ("some text",) * 200)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    _, _, inner_width, inner_height = map(float, root.attrib["viewBox"].split())
    assert width == MAX_WIDTH < inner_width
    assert height / inner_height == pytest.approx(width / inner_width, rel=0.01)


@pytest.mark.parametrize("source", ['start: "(" start ")" |', 'start: "ab" start "-" | "c"'])
def test_a_deep_derivation_is_drawn(source: str) -> None:
    depth = 2_000
    text = "(" * depth + ")" * depth if "(" in source else "ab" * depth + "c" + "-" * depth
    tree = first_tree(read_grammar(source), text)
    assert text_of(tree) == text
    assert tree_text(tree).count("start") == depth + 1
    assert len(rectangles(tree_svg(tree))) == 3 * depth + 2


def test_a_long_word_is_drawn() -> None:
    text = "ab\\\\" * 1_000
    grammar = read_grammar('start: "<" word ">"\nword: word char | char\nchar: /[a-z]/ | "\\\\" /./')
    assert tree_text(first_tree(grammar, f"<{text}>")) == f'start\n├─ "<"\n├─ word {quote(text)}\n└─ ">"'


def test_a_part_without_translation_is_shown_as_text() -> None:
    grammar = read_scfg_text(
        'start -> "a" some , "x"\nstart -> some "b" , "y"\nsome -> "a" , "1"\nsome -> "b" , "2"'
    )
    for derivation in Translator(grammar).to_program("ab", 2).k_best:
        assert from_derivation(derivation).children == ("ab",)

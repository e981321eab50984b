"""A domain of Python values and its parser: what it can do, the documented snippets, and values of wrong types."""

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse import (
    Domain,
    Example,
    FewparseError,
    Options,
    Parser,
    Trie,
    load_domain,
    load_grammar,
    load_split,
    open_model,
    parser_systems,
    run_evaluation,
)
from fewparse.errors import ExecutionError, GrammarError, UnknownName, UsageError
from fewparse.vocabulary import BYTES
from support.toy_model import LongContextToyModel
from test_documents import ROOT, blocks

LETTERS = 'start: "a" "b"* "c"'
PAIRS = [("one", "abc"), ("two", "abbc"), ("three", "ac")]
RULES = """
start -> "turn on the " device , "(on " device ")"
device -> "lamp"
device -> "radio" , "receiver"
"""
VALUE = re.compile(r"^(?P<left>.+?)  # (?P<right>.+)$")


def letters(**settings: Any) -> Domain:
    return Domain(name="letters", examples=PAIRS, grammar=LETTERS, **settings)


def test_the_snippets_of_the_page_run_in_order_and_give_what_they_say() -> None:
    """With the real embedded model."""
    names: dict[str, Any] = {}
    checked = 0
    for language, body in blocks(ROOT / "docs" / "library.md"):
        if language != "python":
            continue
        exec(body, names)
        for line in body.splitlines():
            found = VALUE.match(line)
            if found and not line.startswith(" ") and "=" not in found["left"].split("(")[0]:
                assert eval(found["left"], names) == ast.literal_eval(found["right"]), line
                checked += 1
    names["model"].close()
    assert checked == 6
    assert names["notes"].constraint(BYTES, "program", "remember milk").accepts(b'(note "milk")')
    assert not names["notes"].constraint(BYTES, "program", "remember milk").accepts(b'(note "tea")')


def test_a_parse_has_the_answer_of_the_executor_or_why_it_has_none() -> None:
    def execute(program: str) -> Any:
        if "bb" in program:
            raise ValueError("too many")
        return {"length": len(program)}

    domain, model = letters(executor=execute), LongContextToyModel()
    assert domain.execute("abc") == {"length": 3}
    with pytest.raises(ExecutionError, match="too many"):
        domain.execute("abbc")
    for output, answer, error in (("abc", {"length": 3}, None), ("abbc", None, "too many")):
        parse = Parser(domain, model, constraint=Trie([output], model.vocabulary), max_tokens=20).parse("x")
        assert parse.answer == answer
        assert error is None or error in str(parse.answer_error)
    asked = Parser(letters(executor=execute, execute="on-request"), model, max_tokens=20)
    assert asked.parse("one").answer is None


def test_the_grammar_is_text_a_path_an_object_or_induced(tmp_path: Path) -> None:
    lark, scfg = tmp_path / "letters.lark", tmp_path / "devices.scfg"
    lark.write_text(LETTERS)
    scfg.write_text(RULES)
    for grammar in (LETTERS, lark, load_grammar(lark)):
        constraint = Domain("letters", PAIRS, grammar).constraint(BYTES, "program")
        assert constraint.accepts(b"abbbc")
        assert not constraint.accepts(b"abb")
    pairs = [("lamp please", "(on lamp)")]
    for rules, dialect in ((RULES, "scfg"), (scfg, None), (load_grammar(scfg), None)):
        domain = Domain("devices", pairs, rules, dialect=dialect, target="canonical")  # type: ignore[arg-type]
        assert domain.for_target("canonical").examples[0].canonical == "turn on the lamp"
        assert domain.program_of("turn on the radio", "canonical") == "(on receiver)"
    induced = Domain("calls", [("x", "(on lamp)"), ("y", "(on (all radio))"), ("z", "(off lamp)")])
    assert induced.constraint(BYTES, "program").accepts(b"(off (all radio))")
    assert not induced.constraint(BYTES, "program").accepts(b"(on lamp")
    free = Domain("free", [("x", "a (b")], constraint={"kind": "trie"})
    assert free.constraint(BYTES, "program").accepts(b"a (b")


def test_a_domain_with_a_constraint_of_the_caller_needs_no_grammar() -> None:
    model = LongContextToyModel()
    for examples in ([], [("one", "not lisp (")]):
        domain = Domain("anything", examples)
        parser = Parser(domain, model, constraint=Trie(["ab", "ca"], model.vocabulary), max_tokens=20)
        assert parser.parse("one").program in ("ab", "ca")


def test_a_parser_takes_options_by_name_or_resolved() -> None:
    model = LongContextToyModel()
    by_name = Parser(letters(search={"width": 3}), model, retriever="bm25", max_tokens=20)
    assert (by_name.options.search.width, by_name.options.retriever) == (3, "bm25")
    resolved = Parser(by_name.domain, model, by_name.options)
    assert resolved.parse("two").output == by_name.parse("two").output
    with pytest.raises(UsageError, match="by name and as `options`"):
        Parser(by_name.domain, model, by_name.options, width=4)


def test_replace_and_comparison_work_as_for_other_data_classes() -> None:
    domain = letters()
    assert domain == letters()
    smaller = replace(domain, examples=domain.examples[:1])
    assert (len(smaller.examples), smaller.name) == (1, "letters")
    assert smaller.constraint(BYTES, "program").accepts(b"abc")
    with pytest.raises(UnknownName, match="unknown field 'data'"):
        replace(domain, data=Path())  # type: ignore[call-arg]


def test_it_can_be_evaluated_and_what_needs_a_folder_says_so() -> None:
    domain = letters()
    systems = parser_systems(domain, LongContextToyModel(), {"beam": {"decoder": "beam", "max_tokens": 20}})
    (result,) = run_evaluation(domain, systems, [Example("four", "abbbc")], "mine")
    assert len(result.records) == 1
    assert load_split(domain, "train") == domain.examples
    assert (domain.test_examples, domain.out_of_scope(), domain.data_notes) == ((), (), ())
    with pytest.raises(UsageError, match="made in Python and has no folder") as caught:
        _ = domain.folder
    assert "fewparse new" in str(caught.value.hint)


class NoMethods:
    pass


class Rank:
    def __init__(self, ranking: Any) -> None:
        self._ranking = ranking

    def rank(self, utterance: str, usage: Any) -> Any:
        return self._ranking


class Score:
    def __init__(self, value: Any) -> None:
        self._value = value

    def score(self, utterance: str, output: str) -> Any:
        return self._value


def ranked(ranking: Any) -> None:
    Parser(letters(), MODEL, retriever=Rank(ranking)).parse("a")


def scored(score: Any) -> None:
    Parser(letters(), MODEL, reranker=Score(score), max_tokens=20).parse("a")


MODEL = LongContextToyModel()
WRONG_DOMAINS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({}, "`name` is None"),
    "a name of another type": ({"name": 5}, "`name` is 5 \\(int\\)"),
    "a name with spaces": ({"name": "my home"}, "`name` is 'my home' .* letters, digits"),
    "examples as text": ({"examples": "turn on"}, "`examples` is 'turn on' .* pairs"),
    "examples as an object": ({"examples": {"a": "b"}}, "`examples` is .* expected a list"),
    "an example of another type": (
        {"examples": [("a", "b"), 5]},
        "example 2 is 5 \\(int\\); expected an `Example`",
    ),
    "an example of three": ({"examples": [("a", "b", "c")]}, "example 1 is .* a pair"),
    "a program of another type": ({"examples": [("a", ["b"])]}, "the program of example 1 is .* a text"),
    "an empty program": ({"examples": [("a", " ")]}, "the program of example 1 is empty"),
    "a lone surrogate": ({"examples": [("\ud800", "b")]}, "is not Unicode"),
    "a grammar of another type": ({"grammar": 5}, "`grammar` is 5 \\(int\\); expected the text"),
    "a path as text": ({"grammar": "my.lark"}, "is the text of a grammar"),
    "a dialect": ({"grammar": LETTERS, "dialect": "bnf"}, "unknown dialect 'bnf'"),
    "an executor": ({"executor": "run.py"}, "`executor` is 'run.py' .* expected a function"),
    "a normal form": ({"normal_form": 5}, "`normal_form` is 5"),
    "a setting": ({"tagret": "program"}, "unknown setting 'tagret'"),
    "a setting of another type": ({"target": 5}, "`target` is 5 \\(int\\)"),
    "a table": ({"search": 5}, "`search` is 5 \\(int\\)"),
    "the table of the constraint": ({"constraint": "trie"}, "`constraint` is 'trie' .* expected a table"),
    "a key of a table": ({"search": {"widht": 5}}, "unknown setting 'search.widht'"),
    "a value of a table": ({"search": {"width": "5"}}, "`search.width` is '5' \\(str\\)"),
    "two constraints": ({"grammar": LETTERS, "constraint": {"kind": "trie"}}, "a grammar is given, but"),
    "no grammar": ({"constraint": {"kind": "grammar"}}, "no grammar is given"),
}
WRONG_PARSERS: dict[str, tuple[dict[str, Any], str]] = {
    "the name of a domain": ({"domain": "calendar"}, "`domain` is 'calendar' .* expected a `Domain`"),
    "no domain": ({"domain": None}, "`domain` is None"),
    "a model": ({"model": 5}, "`model` is 5 .* it lacks `name`, `vocabulary`"),
    "an unknown model": ({"model": "gpt-4o"}, "unknown model 'gpt-4o'"),
    "the class of a model": ({"model": LongContextToyModel}, "the class LongContextToyModel; .* an instance"),
    "options": ({"options": {"width": 3}}, "`options` is .* expected `Options`"),
    "a retriever": ({"retriever": NoMethods()}, "`retriever` is a NoMethods; .* it lacks `rank`"),
    "a function as retriever": ({"retriever": len}, "it lacks `rank`"),
    "an unknown retriever": ({"retriever": "bm52"}, "unknown retriever 'bm52'"),
    "the model of the retriever": ({"retriever_model": NoMethods()}, "`retriever_model` is a NoMethods"),
    "a constraint": ({"constraint": NoMethods()}, "`constraint` is a NoMethods; expected a `Constraint`"),
    "the name of a constraint": ({"constraint": "induced"}, "`constraint` is 'induced'"),
    "the class of a constraint": ({"constraint": Trie}, "the class Trie"),
    "another vocabulary": ({"constraint": Trie(["a"], BYTES)}, "compiled for a vocabulary of 256 tokens"),
    "a reranker": ({"reranker": 5}, "`reranker` is 5 .* it lacks `score`"),
    "a number as text": ({"width": "5"}, "the width is '5'"),
    "a flag as text": ({"vote": "yes"}, "`vote` is 'yes' .* True or False"),
    "a name": ({"decoder": 5}, "`decoder` is 5 \\(int\\); expected a text"),
    "a target": ({"target": []}, "`target` is \\[\\]"),
    "a path": ({"adapter": 5}, "`adapter` is 5 .* a path"),
    "an option": ({"wdith": 5}, "unknown option 'wdith'"),
}
WRONG_PARSES: dict[str, tuple[Callable[[], Any], str]] = {
    "an utterance": (lambda: Parser(letters(), MODEL).parse(["a"]), "the utterance is \\['a'\\]"),  # type: ignore[arg-type]
    "a context": (lambda: Parser(letters(), MODEL).parse("a", 5), "the context is 5"),  # type: ignore[arg-type]
    "excluded examples": (
        lambda: Parser(letters(), MODEL).parse("a", without=["b"]),  # type: ignore[list-item]
        "`without` is .* a list of `Example`",
    ),
    "no ranking": (lambda: ranked(None), "the ranking .* is None"),
    "a ranking of texts": (
        lambda: ranked(["one"]),
        "indices from 0 to 2",
    ),
    "an index too large": (
        lambda: ranked([3]),
        "indices from 0 to 2",
    ),
    "a negative index": (lambda: ranked([-1]), "indices from 0 to 2"),
    "a score as text": (
        lambda: scored("1"),
        "not a finite number: '1'",
    ),
    "no score": (lambda: scored(None), "number: None"),
    "a model of another type": (lambda: open_model(5), "the name of a model is 5"),  # type: ignore[arg-type]
    "a domain of another type": (lambda: load_domain(5), "the domain is 5"),  # type: ignore[arg-type]
    "a pool as text": (lambda: load_domain("calendar", pool="5"), "`pool` is '5'"),  # type: ignore[arg-type]
    "a flag of another type": (lambda: Parser.from_domain("calendar", paper=1), "`paper` is 1"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("values", "message"), WRONG_DOMAINS.values(), ids=WRONG_DOMAINS.keys())
def test_a_wrong_value_for_a_domain_is_refused(values: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {} if not values else {"name": "home"}
    with pytest.raises(FewparseError, match=message):
        Domain(**(right | values))


@pytest.mark.parametrize(("values", "message"), WRONG_PARSERS.values(), ids=WRONG_PARSERS.keys())
def test_a_wrong_value_for_a_parser_is_refused(values: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {"domain": letters(), "model": LongContextToyModel()}
    with pytest.raises(UsageError, match=message) as caught:
        Parser(**(right | values))
    assert caught.value.hint is None or caught.value.hint


@pytest.mark.parametrize(("call", "message"), WRONG_PARSES.values(), ids=WRONG_PARSES.keys())
def test_a_wrong_value_at_another_place_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


def test_a_mistake_in_a_grammar_is_shown_with_its_place() -> None:
    with pytest.raises(GrammarError, match=r"<grammar>:1:8: `x` is not defined"):
        Domain("home", PAIRS, "start: x")
    with pytest.raises(GrammarError) as caught:
        Domain("devices", [], RULES)
    assert 'dialect="scfg"' in str(caught.value.hint)


def test_options_resolved_for_a_folder_are_those_of_its_values() -> None:
    assert Options.resolve(letters()).search == Options.resolve(replace(letters(), own_grammar=False)).search

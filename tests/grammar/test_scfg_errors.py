"""Mistakes in `.scfg` files are reported with a message, line and caret, and a hint."""

import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewparse.errors import FewparseError, GrammarError, LimitExceeded
from fewparse.grammar.readers import scfg
from fewparse.grammar.readers.scfg import read_scfg, read_scfg_text

NO_COMMENT = "There are no trailing comments"
CONTINUATION = "There are no continuation lines"
ONE_PROGRAM = "write one rule for each program"
QUOTES = 'in double quotes, as in "text"'
ARROW = "expected `->`, `1>` or `2>` after the name"
WRITTEN = "The arrow is written ->, as in start -> ..."
FORM = "A rule is written `name -> utterance , program`"
NO_SYMBOL = "For the empty string, write #e."
NO_GROUPS = "there are no groups"
ARGUMENT = "An argument is one name, one string, #e or one macro call"
JSON = r"Escapes are those of JSON"

MISTAKES = {
    "a trailing comment": ('start -> "a" , "b" # note', "a comment is not allowed here", "# note", NO_COMMENT),
    "a trailing comment that begins with #e": ('start -> "a" #ends', "a comment", "#ends", NO_COMMENT),
    "a comment with slashes": ('start -> "a" // note', "this regular expression is empty", "// note", NO_COMMENT),
    "alternatives without a program": (
        'start -> "a" | "b"',
        "expected a comma and a program",
        '| "b"',
        "write one rule for each",
    ),
    "two commas": ('start -> "a" , "b" , "c"', "a program side is one expansion", ', "c"', ONE_PROGRAM),
    "a program with alternatives": ('start -> "a" , "b" | "c"', "a program side is one", '| "c"', ONE_PROGRAM),
    "a comma in an utterance-only rule": ('x 1> "a" , "b"', "has no program", ', "b"', "written with ->"),
    "alternatives in a macro": (
        'f 2> "a" | "b"',
        "a macro has one expansion",
        '| "b"',
        "a part of a program side",
    ),
    "a comma in a macro": ('f 2> "a" , "b"', "a macro has one expansion", ', "b"', "a part of a program side"),
    "a macro call in an utterance": (
        'start -> f(x) , "P"',
        "cannot be called on the utterance",
        "f(",
        "after the comma",
    ),
    "a macro call in a mirrored rule": (
        'start -> "a" f()',
        "cannot be called on the utterance",
        "f(",
        "after the comma",
    ),
    "a macro call in an utterance-only rule": (
        "x 1> f()",
        "cannot be called on the utterance",
        "f(",
        "after the comma",
    ),
    "an optional regular expression": (
        "start -> /a/?",
        "a regular expression cannot be optional",
        "?",
        "then `digit?`",
    ),
    "an optional macro call": ('start -> "a" , f()?', "a macro call cannot be optional", "?", "its own rule"),
    "an optional #e": ("start -> #e?", "#e cannot be optional", "?", "It is empty already."),
    "twice optional": ("start -> a??", "an optional symbol cannot be optional", "?\n", "One ? is enough."),
    "an optional parameter": ("f(x) 2> x?", "a macro's parameter cannot be optional", "?", "pass its name"),
    "a lone question mark": ("start -> ?", "nothing precedes this ?", "?", 'name? or "text"?'),
    "single quotes": ("start -> 'a'", "this quotation mark is not supported", "'a'", QUOTES),
    "typographic quotes": ("start -> “a”", "this quotation mark is not supported", "“a”", QUOTES),
    "an unclosed string": ('start -> x "a , y', "this string is never closed", '"a', "ends with a double quote"),
    "a string closed by an escape": (r'start -> "a\"', "this string is never closed", r'"a\"', r"is written \"."),
    "an unclosed regular expression": (
        "start -> x /a",
        "is never closed",
        "/a",
        r"a slash inside is written \x2f",
    ),
    "a slash inside a regular expression": (r"start -> /a\/b/", "ends at the next slash", "/b/", r"written \x2f"),
    "an empty regular expression": ("start -> //", "this regular expression is empty", "//", "is /./"),
    "a wrong regular expression": ("start -> x /(a/", "missing )", "/\n", "Python's `regex`"),
    "a wrong class": ("start -> /[z-a]/", "this range runs backwards", "]/", "Python's `regex`"),
    "a colon for the arrow": ('start : "a"', ARROW, ": ", WRITTEN),
    "a doubled colon for the arrow": ('start ::= "a"', ARROW, "::=", WRITTEN),
    "a colon and equals for the arrow": ('start := "a"', ARROW, ":=", WRITTEN),
    "equals for the arrow": ('start = "a"', ARROW, "= ", WRITTEN),
    "a fat arrow": ('start => "a"', ARROW, "=>", WRITTEN),
    "a drawn arrow": ('start → "a"', ARROW, "→", WRITTEN),
    "an arrow glued to its name": ('start1> "a"', ARROW, "> ", "Put a space before 1>"),
    "no arrow": ("start", ARROW, "\n", FORM),
    "a string for the arrow": ('start "a"', ARROW, '"a"', FORM),
    "two names": ('start rule -> "a"', ARROW, "rule", FORM),
    "a hyphen in a name": ('my-rule -> "a"', "'-' is not allowed here", "-rule", "only letters, digits and _"),
    "an escape of Python": (r'start -> "ab\x41"', "this escape is not supported", r"\x41", JSON),
    "a short escape": (r'start -> "\u41"', "this escape is not supported", r"\u41", r"\u0041"),
    "an escaped quote of another kind": (r'start -> "it\'s"', "this escape is not supported", r"\'s", JSON),
    "a tab in a string": (
        'start -> "a\tb"',
        "a control character is not allowed in a string",
        "\tb",
        r"Write \t for it",
    ),
    "half a pair": (r'start -> "a\ud800"', "half of a surrogate pair", r"\ud800", "both halves of its pair"),
    "the other half": (r'start -> "\uDE00\uD83D"', "half of a surrogate pair", r"\uDE00", "both halves"),
    "half a pair as it is": ('start -> "a\udc80"', "half of a surrogate pair", "\udc80", "both halves"),
    "a name that begins with a digit": ('1st -> "a"', "cannot begin with a digit", "1st", "begins with a letter"),
    "a symbol that begins with a digit": (
        "start -> a 2nd",
        "cannot begin with a digit",
        "2nd",
        "begins with a letter",
    ),
    "a name that begins with _": ('_x -> "a"', "a name cannot begin with _", "_x", "begins with a letter"),
    "a symbol that begins with _": ("start -> _x", "a name cannot begin with _", "_x", "begins with a letter"),
    "nothing before the arrow": ('-> "a"', "expected a name before the arrow", "->", FORM),
    "nothing before the utterance-only arrow": ('1> "a"', "expected a name before the arrow", "1>", FORM),
    "nothing after the arrow": ("start ->", "expected something after `->`", "\n", NO_SYMBOL),
    "nothing after the utterance-only arrow": ("start 1>  ", "expected something after `1>`", "  ", NO_SYMBOL),
    "nothing in a macro": ("f(x) 2>", "expected something after `2>`", "\n", NO_SYMBOL),
    "nothing before the comma": ('start -> , "b"', "expected something after `->`", ", ", NO_SYMBOL),
    "nothing after the comma": ('start -> "a" ,', "expected something after `,`", "\n", NO_SYMBOL),
    "nothing after a bar": ('start -> "a" | , "b"', "expected something after `|`", ', "b"', NO_SYMBOL),
    "nothing before a bar": ('start -> | "a" , "b"', "expected something after `->`", "| ", NO_SYMBOL),
    "a rule continued with a bar": ('start -> "a"\n  | "b"', "a rule cannot begin with `|`", "| ", CONTINUATION),
    "a rule continued with a comma": ('start -> "a"\n  , "b"', "a rule cannot begin with `,`", ", ", CONTINUATION),
    "a rule continued with a string": (
        'start -> "a"\n  "b"',
        "expected the name of a rule",
        '"b"',
        "all on one line",
    ),
    "a semicolon": ('start -> "a" ;', "a semicolon is not allowed here", ";", "remove the semicolon"),
    "two rules on a line": (
        'start -> "a" start -> "b"',
        "`->` is not allowed here",
        '-> "b"',
        "One line is one rule.",
    ),
    "a repetition": ("start -> a*", "repetition is not supported", "*", "a recursive rule"),
    "a bracket": ('start -> ["a"]', "brackets are not supported", "[", "its own rule"),
    "a group": ('start -> ("a" b)', "expected a name, a string", "(", FORM),
    "a group after a string": ('start -> "a" ("b")', "`(` is not allowed here", "(", NO_GROUPS),
    "a parenthesis closed twice": ('start -> #e , f())\nf 2> "a"', "`)` is not allowed here", ")\n", NO_GROUPS),
    "an obsolete mark": ('start -> !"a"', "'!' is not supported; expected a name", "!", FORM),
    "an unsupported character": ('start -> "a" & "b"', "'&' is not supported", "& ", FORM),
    "a macro with the arrow of a rule": (
        "f(x) -> x",
        "expected `2>` after a macro's parameters",
        "->",
        "with 2>, as in f(x)",
    ),
    "a parameter that is a string": ('f("x") 2> #e', "expected a parameter's name", '"x"', "written name(x, y)"),
    "parameters without a comma": (
        "f(x y) 2> x",
        "expected `,` or `)` after a parameter",
        "y)",
        "written name(x, y)",
    ),
    "a parameter twice": ("f(x, x) 2> x", "the parameter `x` is repeated", "x)", "its own name"),
    "unclosed parameters": ("f(x,", "this ( is never closed", "(x", "written name(x, y)"),
    "unclosed parameters after a name": ("f(x", "this ( is never closed", "(x", "written name(x, y)"),
    "an unclosed call": ("start -> #e , f(g(x)", "this macro call is never closed", "f(g", "name(x, y)"),
    "an unclosed inner call": ("start -> #e , f(g(x", "this macro call is never closed", "g(x", "name(x, y)"),
    "no argument before a comma": (
        "start -> #e , f(,)",
        "expected an argument or `)` in the call of `f`",
        ",)",
        ARGUMENT,
    ),
    "a regular expression as an argument": ("start -> #e , f(/a/)", "expected an argument", "/a/", ARGUMENT),
    "an optional argument": ("start -> #e , f(x?)", "expected `,` or `)`", "?)", ARGUMENT),
    "two symbols as an argument": ('start -> #e , f(x "a")', "expected `,` or `)`", '"a"', ARGUMENT),
    "a bad escape in an argument": (r'start -> #e , f("\x")', "this escape is not supported", r"\x", JSON),
    "an unknown macro": (
        "start -> #e , fo(x)\nfoo(x) 2> x",
        "no macro is called `fo`",
        "fo(",
        "Did you mean foo?",
    ),
    "an unknown macro without a similar one": (
        "start -> #e , k()",
        "no macro is called `k`",
        "k(",
        "defined with 2>",
    ),
    "an unknown macro in an unused macro": (
        'start -> "a"\nf 2> "b" g(h())\nh 2> #e',
        "no macro is called `g`",
        "g(",
        "defined with 2>",
    ),
    "too few arguments": (
        "start -> #e , f(x)\nf(x, y) 2> x y",
        "takes 2 arguments, not 1",
        "f(",
        "my/rules.scfg:2",
    ),
    "too many arguments": (
        "f(x) 2> x\nstart -> #e , f(x, y)",
        "takes 1 argument, not 2",
        "f(x, y)",
        "my/rules.scfg:1",
    ),
    "arguments for a macro without any": ("k 2> #e\nstart -> #e , k(x)", "takes no arguments, not 1", "k(", ":1."),
    "a macro defined twice": (
        'f(x) 2> x\n\n f 2> "a"',
        "the macro `f` is defined twice",
        "f 2>",
        "already defined at my/rules.scfg:1",
    ),
    "a macro that calls itself": ('f(x) 2> "a" f(x)', "the macro `f` calls itself", "f(x)\n", "f calls f."),
    "macros that call each other": (
        "start -> #e\nf 2> #e g()\ng 2> h(k())\nh(x) 2> x f()\nk 2> #e",
        "the macro `f` calls itself",
        "g()",
        "f calls g calls h calls f. Use a rule for recursion, not a macro.",
    ),
}


def mistake(source: str) -> GrammarError:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GrammarError) as caught:
            read_scfg_text(source, Path("my/rules.scfg"))
    return caught.value


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_shown_with_a_caret_and_a_hint(name: str) -> None:
    source, message, text_at_caret, hint = MISTAKES[name]
    error = mistake(source)
    assert error.line is not None
    assert error.column is not None
    line = source.split("\n")[error.line - 1]
    assert (line[error.column - 1 :] + "\n").startswith(text_at_caret)
    shown = error.message.split("\n")
    assert shown[0].startswith(f"my/rules.scfg:{error.line}:{error.column}: ")
    assert message in shown[0]
    assert shown[1:] == ["    " + line, "    " + " " * (error.column - 1) + "^"]
    assert error.hint is not None
    assert hint in error.hint


def test_a_mistake_has_the_path_of_its_file() -> None:
    with pytest.raises(GrammarError) as caught:
        read_scfg([("a.scfg", 'start -> "a"'), ("b.scfg", '# fine\n\nx -> "b" ;\n'), ("c.scfg", "also wrong")])
    assert (caught.value.path, caught.value.line, caught.value.column) == ("b.scfg", 3, 10)


def test_a_macro_defined_in_two_files_is_rejected() -> None:
    with pytest.raises(GrammarError) as caught:
        read_scfg([("a.scfg", "f 2> #e"), ("b.scfg", "start -> #e\nf 2> #e")])
    assert (caught.value.path, caught.value.line) == ("b.scfg", 2)
    assert caught.value.hint == "It is already defined at a.scfg:1."


def test_the_first_mistake_of_a_line_is_shown() -> None:
    assert mistake("start -> a b* 'c' \"d").column == 13


UNDEFINED = {
    "in an utterance": ('start -> devise , "x"', 9, "Did you mean device?"),
    "in a program": ('start -> "x" , devise', 15, "Did you mean device?"),
    "in the second alternative": ('start -> "x" | "y" devise , "x"', 19, "Did you mean device?"),
    "optional": ('start -> "x" devise? , "x"', 13, "Did you mean device?"),
    "without a program": ('start 1> "x" devise', 13, "Did you mean device?"),
    "in a macro": ('twice(left) 2> left "lefd" lefd', 27, "Did you mean left?"),
    "as an argument": ('start -> "x" , pair(pair(devise))', 25, "Did you mean device?"),
    "after the same text": ('start -> "devise" devise , "x"', 18, "Did you mean device?"),
    "unlike all others": ('start -> "x" qqq , "x"', 13, "Known: device, start."),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_name_without_a_rule_is_a_mistake_if_the_grammar_must_be_complete(name: str) -> None:
    source, at, hint = UNDEFINED[name]
    rules = 'start -> "a" , pair(device)\ndevice -> "lamp"\npair(left) 2> left'
    sources = [("a.scfg", rules), ("b.scfg", f"# fine\n{source}")]
    assert read_scfg(sources).rules
    with pytest.raises(GrammarError, match="no rule is called `") as caught:
        read_scfg(sources, complete=True)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("b.scfg", 2, at + 1)
    assert caught.value.hint == hint


def test_a_missing_start_is_reported_for_the_first_file() -> None:
    with pytest.raises(GrammarError) as caught:
        read_scfg([("a.scfg", 'begin -> "a"'), ("b.scfg", "start 2> #e")])
    assert caught.value.message == "a.scfg: no rule is called `start`"
    assert caught.value.hint == "It is the start symbol of the grammar."


def test_a_long_cycle_of_macros_is_truncated() -> None:
    source = "\n".join(f"f{i} 2> f{(i + 1) % 50_000}()" for i in range(50_000))
    hint = mistake(source).hint
    assert hint is not None
    assert hint.count("calls") == 11
    assert "calls ... calls f0. Use" in hint


def test_a_long_name_is_truncated() -> None:
    assert len(str(mistake(f"start -> #e , {'f' * 100_000}()"))) < 500


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            'start -> "' + "a" * 1_000_000 + '"',
            "<grammar>:1: the line has 1,000,011 characters; at most 1,000,000",
        ),
        ("start -> #e\n" * 200_001, "<grammar>:200001: the grammar has more than 200,000 rules"),
        ("start -> " + "x " * 100_001, "<grammar>:1: a right-hand side has more than 100,000 symbols"),
        ("\nstart -> #e , " + "x " * 100_001, "<grammar>:2: a right-hand side has more than 100,000 symbols"),
        (
            "\n".join(f"f{i}(x) 2> f{i + 1}(x) f{i + 1}(x)" for i in range(40))
            + "\nf40(x) 2> x\nstart -> #e , f0(y)",
            "<grammar>:42: a right-hand side has more than 100,000 symbols",
        ),
        (
            "start -> " + "x | " * 2_000 + "x , " + "y " * 2_000,
            "<grammar>:1: 2,001 alternatives for 2,000 symbols are too many",
        ),
    ],
    ids=["line", "rules", "utterance", "program", "macros", "links"],
)
def test_a_too_large_grammar_exceeds_a_limit(source: str, message: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        read_scfg_text(source)
    assert caught.value.message.startswith(message)


def test_macros_with_exponential_empty_expansion_exceed_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scfg, "MAX_STEPS", 10_000)
    calls = "\n".join(f"f{i} 2> f{i + 1}() f{i + 1}()" for i in range(40))
    with pytest.raises(LimitExceeded, match="<grammar>:42: the macros expand in more than 10,000 steps"):
        read_scfg_text(f"{calls}\nf40 2> #e\nstart -> #e , f0()")


def test_the_maximum_number_of_symbols_is_accepted() -> None:
    rule = read_scfg_text("start -> #e , f(#e)\nf(x) 2> " + "x y " * 100_000).rules[0]
    assert rule.program is not None
    assert len(rule.program) == 100_000


@pytest.mark.parametrize(
    "right",
    [
        '"' * 900_000,
        '"' + '\\"' * 450_000,
        "/" * 900_000,
        " " * 900_000,
        "x|" * 9_000,
        "f(" * 100_000,
        "#e?" * 9_000,
    ],
    ids=["quotes", "escapes", "slashes", "spaces", "bars", "calls", "optional"],
)
def test_a_long_line_is_read_or_rejected(right: str) -> None:
    for side in ("", "#e , "):
        with suppress(GrammarError):
            assert read_scfg_text(f"start -> {side}{right}x").rules


PIECES = [
    "start",
    "x",
    "f",
    "->",
    "1>",
    "2>",
    "|",
    ",",
    "?",
    "(",
    ")",
    "#e",
    "#",
    '"a"',
    '""',
    '"',
    "/a/",
    "/[b-d]/",
]
PIECES += [
    "\n",
    "\nstart -> ",
    "\nf(x) 2> ",
    " ",
    "\\",
    "f(x)",
    "f()",
    "'",
    ";",
    ":",
    "_",
    "7",
    "é",
    "\r",
    "\udc80",
]


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_any_tokens_are_read_or_rejected_but_never_crash(source: str) -> None:
    with suppress(FewparseError):
        assert read_scfg_text("start -> " + source).rules


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters().filter(lambda char: char != "/"), max_size=30), st.booleans())
def test_any_text_is_read_or_rejected_but_never_crashes(source: str, inside: bool) -> None:
    with suppress(FewparseError):
        assert read_scfg_text(f'start -> "{source}"' if inside else source).rules

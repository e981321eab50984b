"""Mistakes in `.scfg` files are shown at their place, with what was expected and what to do next."""

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
NOTHING = "For nothing, write #e."
NO_GROUPS = "there are no groups"
ARGUMENT = "An argument is one name, one string, #e or one macro call"
JSON = r"Escapes are those of JSON"

MISTAKES = {
    "a trailing comment": ('start -> "a" , "b" # note', "a comment cannot stand here", "# note", NO_COMMENT),
    "a trailing comment that begins like nothing": ('start -> "a" #ends', "a comment", "#ends", NO_COMMENT),
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
        "behind the comma",
    ),
    "a macro call in a mirrored rule": (
        'start -> "a" f()',
        "cannot be called on the utterance",
        "f(",
        "behind the comma",
    ),
    "a macro call in an utterance-only rule": (
        "x 1> f()",
        "cannot be called on the utterance",
        "f(",
        "behind the comma",
    ),
    "an optional regular expression": (
        "start -> /a/?",
        "a regular expression cannot be optional",
        "?",
        "then `digit?`",
    ),
    "an optional macro call": ('start -> "a" , f()?', "a macro call cannot be optional", "?", "a rule of its own"),
    "an optional nothing": ("start -> #e?", "#e cannot be optional", "?", "It is nothing already."),
    "twice optional": ("start -> a??", "what is optional cannot be optional", "?\n", "One ? is enough."),
    "an optional parameter": ("f(x) 2> x?", "a macro's parameter cannot be optional", "?", "pass its name"),
    "a lone question mark": ("start -> ?", "nothing stands before this ?", "?", 'name? or "text"?'),
    "single quotes": ("start -> 'a'", "this quotation mark is not understood", "'a'", QUOTES),
    "typographic quotes": ("start -> “a”", "this quotation mark is not understood", "“a”", QUOTES),
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
    "an arrow glued to its name": ('start1> "a"', ARROW, "> ", "Put a blank before 1>"),
    "no arrow": ("start", ARROW, "\n", FORM),
    "a string for the arrow": ('start "a"', ARROW, '"a"', FORM),
    "two names": ('start rule -> "a"', ARROW, "rule", FORM),
    "a hyphen in a name": ('my-rule -> "a"', "'-' cannot stand here", "-rule", "only letters, digits and _"),
    "an escape of Python": (r'start -> "ab\x41"', "this escape is not understood", r"\x41", JSON),
    "a short escape": (r'start -> "\u41"', "this escape is not understood", r"\u41", r"\u0041"),
    "an escaped quote of another kind": (r'start -> "it\'s"', "this escape is not understood", r"\'s", JSON),
    "a tab in a string": (
        'start -> "a\tb"',
        "a control character cannot stand in a string",
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
    "nothing after the arrow": ("start ->", "expected something after `->`", "\n", NOTHING),
    "nothing after the utterance-only arrow": ("start 1>  ", "expected something after `1>`", "  ", NOTHING),
    "nothing in a macro": ("f(x) 2>", "expected something after `2>`", "\n", NOTHING),
    "nothing before the comma": ('start -> , "b"', "expected something after `->`", ", ", NOTHING),
    "nothing after the comma": ('start -> "a" ,', "expected something after `,`", "\n", NOTHING),
    "nothing after a bar": ('start -> "a" | , "b"', "expected something after `|`", ', "b"', NOTHING),
    "nothing before a bar": ('start -> | "a" , "b"', "expected something after `->`", "| ", NOTHING),
    "a rule continued with a bar": ('start -> "a"\n  | "b"', "a rule cannot begin with `|`", "| ", CONTINUATION),
    "a rule continued with a comma": ('start -> "a"\n  , "b"', "a rule cannot begin with `,`", ", ", CONTINUATION),
    "a rule continued with a string": (
        'start -> "a"\n  "b"',
        "expected the name of a rule",
        '"b"',
        "all on one line",
    ),
    "a semicolon": ('start -> "a" ;', "a semicolon cannot stand here", ";", "leave the semicolon out"),
    "two rules on a line": (
        'start -> "a" start -> "b"',
        "`->` cannot stand here",
        '-> "b"',
        "One line is one rule.",
    ),
    "a repetition": ("start -> a*", "there is no repetition", "*", "a rule that uses itself"),
    "a bracket": ('start -> ["a"]', "there are no brackets", "[", "a rule of its own"),
    "a group": ('start -> ("a" b)', "expected a name, a string", "(", FORM),
    "a group after a string": ('start -> "a" ("b")', "`(` cannot stand here", "(", NO_GROUPS),
    "a parenthesis closed twice": ('start -> #e , f())\nf 2> "a"', "`)` cannot stand here", ")\n", NO_GROUPS),
    "an obsolete mark": ('start -> !"a"', "'!' is not understood; expected a name", "!", FORM),
    "a foreign character": ('start -> "a" & "b"', "'&' is not understood", "& ", FORM),
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
    "a parameter twice": ("f(x, x) 2> x", "the parameter `x` comes twice", "x)", "its own name"),
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
    "a bad escape in an argument": (r'start -> #e , f("\x")', "this escape is not understood", r"\x", JSON),
    "an unknown macro": (
        "start -> #e , fo(x)\nfoo(x) 2> x",
        "no macro is called `fo`",
        "fo(",
        "Did you mean foo?",
    ),
    "an unknown macro without a like": ("start -> #e , k()", "no macro is called `k`", "k(", "defined with 2>"),
    "an unknown macro in a macro that nobody calls": (
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
        "my/rules.scfg:1 already",
    ),
    "a macro that calls itself": ('f(x) 2> "a" f(x)', "the macro `f` calls itself", "f(x)\n", "f calls f."),
    "macros that call each other": (
        "start -> #e\nf 2> #e g()\ng 2> h(k())\nh(x) 2> x f()\nk 2> #e",
        "the macro `f` calls itself",
        "g()",
        "f calls g calls h calls f. What repeats is a rule, not a macro.",
    ),
}


def mistake(source: str) -> GrammarError:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GrammarError) as caught:
            read_scfg_text(source, Path("my/rules.scfg"))
    return caught.value


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_shown_at_its_place_with_a_hint(name: str) -> None:
    source, message, place, hint = MISTAKES[name]
    error = mistake(source)
    assert error.line is not None
    assert error.column is not None
    line = source.split("\n")[error.line - 1]
    assert (line[error.column - 1 :] + "\n").startswith(place)
    shown = error.message.split("\n")
    assert shown[0].startswith(f"my/rules.scfg:{error.line}:{error.column}: ")
    assert message in shown[0]
    assert shown[1:] == ["    " + line, "    " + " " * (error.column - 1) + "^"]
    assert error.hint is not None
    assert hint in error.hint


def test_a_mistake_names_the_file_in_which_it_is() -> None:
    with pytest.raises(GrammarError) as caught:
        read_scfg([("a.scfg", 'start -> "a"'), ("b.scfg", '# fine\n\nx -> "b" ;\n'), ("c.scfg", "also wrong")])
    assert (caught.value.path, caught.value.line, caught.value.column) == ("b.scfg", 3, 10)


def test_a_macro_defined_in_two_files_is_defined_twice() -> None:
    with pytest.raises(GrammarError) as caught:
        read_scfg([("a.scfg", "f 2> #e"), ("b.scfg", "start -> #e\nf 2> #e")])
    assert (caught.value.path, caught.value.line) == ("b.scfg", 2)
    assert caught.value.hint == "It is defined at a.scfg:1 already."


def test_the_first_mistake_of_a_line_is_shown() -> None:
    assert mistake("start -> a b* 'c' \"d").column == 13


def test_a_missing_start_is_a_mistake_of_the_first_file() -> None:
    with pytest.raises(GrammarError) as caught:
        read_scfg([("a.scfg", 'begin -> "a"'), ("b.scfg", "start 2> #e")])
    assert caught.value.message == "a.scfg: no rule is called `start`"
    assert caught.value.hint == "Every grammar begins there."


def test_a_long_circle_of_macros_is_shown_in_part() -> None:
    source = "\n".join(f"f{i} 2> f{(i + 1) % 50_000}()" for i in range(50_000))
    hint = mistake(source).hint
    assert hint is not None
    assert hint.count("calls") == 11
    assert "calls ... calls f0. What" in hint


def test_a_long_name_is_shown_in_part() -> None:
    assert len(str(mistake(f"start -> #e , {'f' * 100_000}()"))) < 500


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            'start -> "' + "a" * 1_000_000 + '"',
            "<grammar>:1: the line has 1,000,011 characters; at most 1,000,000",
        ),
        ("start -> #e\n" * 200_001, "<grammar>:200001: more than 200,000 rules"),
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
def test_what_is_too_large_exceeds_a_limit(source: str, message: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        read_scfg_text(source)
    assert caught.value.message.startswith(message)


def test_macros_that_expand_for_ever_into_nothing_exceed_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scfg, "MOST_STEPS", 10_000)
    calls = "\n".join(f"f{i} 2> f{i + 1}() f{i + 1}()" for i in range(40))
    with pytest.raises(LimitExceeded, match="<grammar>:42: the macros expand in more than 10,000 steps"):
        read_scfg_text(f"{calls}\nf40 2> #e\nstart -> #e , f0()")


def test_exactly_as_many_symbols_as_are_allowed_are_read() -> None:
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
    ids=["quotes", "escapes", "slashes", "blanks", "bars", "calls", "optional"],
)
def test_a_long_line_gets_its_answer(right: str) -> None:
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
def test_any_pieces_of_the_format_are_read_or_refused_but_never_crash(source: str) -> None:
    with suppress(FewparseError):
        assert read_scfg_text("start -> " + source).rules


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters().filter(lambda char: char != "/"), max_size=30), st.booleans())
def test_any_text_is_read_or_refused_but_never_crashes(source: str, inside: bool) -> None:
    with suppress(FewparseError):
        assert read_scfg_text(f'start -> "{source}"' if inside else source).rules

"""Induce a grammar from example programs that are S-expressions.

A function is identified by its head (`call f` for `(call f x)`) and has slots: its positions and its keywords. The
merge level determines how far the examples are generalised; each level derives all that the one before derives:

strict  a slot takes exactly the functions and constants that were seen in it;
typed   slots that share a function or a constant are of one type and take all that any slot of the type takes;
loose   a slot in which a form was seen takes any expression; slots with only words and literals keep their type;
open    if the examples vary there, constants may end in any name after a dot (`en.person.` and a name) and contain
        any number (`May-` and a number); keywords that not all calls of a function have are optional, in the order
        in which they were seen.

Up to the typed level, functions whose arguments are all atoms, such as `(string <)`, are distinguished by the slot
that they fill. Literals (strings, numbers, dates, times) are generalised to classes at every level. Every sentence
of the grammar is a balanced program in compact form (see `sexpr`), in which each function has a signature that was
seen.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fewparse.errors import GrammarError, LimitExceeded, UnknownName, UsageError, caret
from fewparse.grammar.induction.rule_writer import (
    QUOTED,
    ROOT_SLOT,
    Constant,
    ConstantPattern,
    Filler,
    Function,
    LiteralClass,
    Slot,
    literal_class,
    write_grammar,
)
from fewparse.grammar.induction.sexpr import (
    OPERATOR,
    Call,
    Form,
    Malformed,
    Node,
    Signature,
    compact,
    is_keyword,
    parse_call,
    read_expression,
    read_program,
)
from fewparse.grammar.parsing.chart import ChartParser
from fewparse.grammar.rules import Grammar, Production, Ref, Text

MergeLevel = Literal["strict", "typed", "loose", "open"]
MERGE_LEVELS: tuple[MergeLevel, ...] = get_args(MergeLevel)
APPLY_HEADS = ("call",)
MAX_TOKENS = 1_500_000
MAX_FUNCTIONS = 10_000
MAX_ARGUMENTS = 5_000
ONLY_S_EXPRESSIONS = "Grammars are induced from S-expressions only, as in (set lamp on). Else, write a grammar."
NAME = re.compile(r"[A-Za-z0-9_-]+")
Fillers = dict[Filler, None]
"""An ordered set."""


@dataclass(frozen=True)
class InducedGrammar:
    """A grammar with the number of programs, functions and constants it was induced from."""

    grammar: Grammar
    programs: int
    functions: int
    constants: int
    literals: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """The number of programs that a grammar derives, and the other programs in compact form."""

    derived: int
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """The fraction of the programs that is derived."""
        return self.derived / max(1, self.derived + len(self.missed))


def induce(
    programs: Iterable[str],
    merge: MergeLevel = "typed",
    apply_heads: Collection[str] = APPLY_HEADS,
    locate: Callable[[int], str] = "program {}".format,
) -> InducedGrammar:
    """Induce a grammar that derives all of these programs, and others according to the merge level.

    `apply_heads` are the heads that apply the function named after them; `locate` returns where a program is, by
    its number, for errors. Raises `UnknownName` for an unknown level, `UsageError` without programs,
    `GrammarError` for a program that is not an S-expression, and `LimitExceeded` if the programs are too large or
    have too many functions.
    """
    if merge not in MERGE_LEVELS:
        raise UnknownName("merge level", merge, MERGE_LEVELS)
    trees = read_examples(programs, locate)
    if not trees:
        raise UsageError("cannot induce a grammar without programs", "Give at least one example.")
    observed = Observations(trees, merge, apply_heads)
    slots = observed.slots if merge == "strict" else merge_types(observed.slots)
    if merge in ("loose", "open"):
        slots = merge_expressions(slots)
    if merge == "open":
        slots = generalise_constants(slots)
    grammar = write_grammar(
        observed.signatures,
        {slot: tuple(allowed_fillers(slot, fillers)) for slot, fillers in slots.items()},
        observed.quoted,
        optional_keywords=merge == "open",
    )
    all_fillers = {filler for fillers in observed.slots.values() for filler in fillers}
    return InducedGrammar(
        grammar,
        programs=len(trees),
        functions=len({function.head for function in observed.signatures}),
        constants=sum(isinstance(filler, Constant) for filler in all_fillers),
        literals=tuple(sorted(filler.rule for filler in all_fillers if isinstance(filler, LiteralClass))),
    )


def coverage(grammar: Grammar, programs: Sequence[str]) -> Coverage:
    """Return which programs a grammar derives; they are compared in compact form."""
    parser = ChartParser(grammar)
    texts = [compact(read_program(source, f"program {number}")) for number, source in enumerate(programs, 1)]
    missed = tuple(text for text in texts if not parser.accepts(text))
    return Coverage(len(texts) - len(missed), missed)


def wider_level(
    programs: Sequence[str], merge: MergeLevel, others: Sequence[str]
) -> tuple[MergeLevel, Coverage] | None:
    """Return the next level whose grammar of `programs` derives more of the others; None if there is none."""
    before = coverage(induce(programs, merge).grammar, others).derived
    for level in MERGE_LEVELS[MERGE_LEVELS.index(merge) + 1 :]:
        covered = coverage(induce(programs, level).grammar, others)
        if covered.derived > before:
            return level, covered
    return None


def read_examples(programs: Iterable[str], locate: Callable[[int], str]) -> list[Node]:
    """Parse the examples; raise `LimitExceeded` if all together are too large."""
    trees: list[Node] = []
    tokens = 0
    for number, source in enumerate(programs, 1):
        tokens += source.count(" ") + source.count("(")
        if tokens > MAX_TOKENS:
            message = f"the programs have more than {MAX_TOKENS:,} words and parentheses (at program {number})"
            raise LimitExceeded(message, "Induce the grammar from fewer programs.")
        trees.append(read_example(source, number, locate))
    return trees


def read_example(source: str, number: int, locate: Callable[[int], str]) -> Node:
    """Parse an example; raise `GrammarError` with its location if it is not an S-expression."""
    try:
        tree = read_expression(source, f"program {number}")
        if is_keyword(tree):
            raise Malformed("a keyword alone is not a program", tree.at)
    except Malformed as error:
        message = f"the program is not an S-expression: {error.reason}\n{caret(source, error.at)}"
        raise GrammarError(message, locate(number), hint=ONLY_S_EXPRESSIONS) from None
    return tree


class Observations:
    """The functions of the examples with their signatures, the fillers of each slot, and the quoted strings."""

    def __init__(self, trees: Sequence[Node], merge: MergeLevel, apply_heads: Collection[str]) -> None:
        self.signatures: dict[Function, dict[Signature, None]] = {}
        self.slots: dict[Slot, Fillers] = {}
        self.quoted: dict[str, None] = {}
        self._merge = merge
        self._apply_heads = apply_heads
        self._atomic_heads = self._find_atomic_heads(trees) if merge in ("strict", "typed") else set()
        agenda = [(tree, ROOT_SLOT) for tree in reversed(trees)]
        while agenda:
            node, slot = agenda.pop()
            fillers = self.slots.setdefault(slot, {})
            if isinstance(node, Form):
                call = parse_call(node, apply_heads)
                function = self._function(call, slot)
                check_size(call, len(self.signatures))
                fillers[function] = None
                self.signatures.setdefault(function, {})[call.signature] = None
                names = [parameter.slot for parameter in call.signature if parameter.slot]
                inner = [(value, Slot(function, name)) for name, value in zip(names, call.values, strict=True)]
                agenda += reversed(inner)
            elif node.quoted:
                fillers[QUOTED] = None
                self.quoted[node.text] = None
            else:
                fillers[literal_class(node.text) or Constant(node.text)] = None

    def _find_atomic_heads(self, trees: Sequence[Node]) -> set[str]:
        """Return the heads of functions that have arguments, all of them atoms."""
        found: dict[str, bool] = {}
        agenda = list(trees)
        while agenda:
            node = agenda.pop()
            if isinstance(node, Form):
                call = parse_call(node, self._apply_heads)
                if call.values:
                    atomic = not any(isinstance(value, Form) for value in call.values)
                    found[call.head] = found.get(call.head, True) and atomic
                agenda += call.values
        return {head for head, is_atomic in found.items() if is_atomic}

    def _function(self, call: Call, slot: Slot) -> Function:
        signature = call.signature if self._merge == "strict" else None
        return Function(call.head, signature, slot if call.head in self._atomic_heads else None)


def check_size(call: Call, functions: int) -> None:
    """Raise `LimitExceeded` for a call with too many arguments, or if there are too many functions."""
    if len(call.signature) > MAX_ARGUMENTS:
        message = (
            f"a call of `{call.head[:60]}` has {len(call.signature):,} arguments; the limit is {MAX_ARGUMENTS:,}"
        )
        raise LimitExceeded(message, "Write long lists as nested calls.")
    if functions > MAX_FUNCTIONS:
        message = f"the programs have more than {MAX_FUNCTIONS:,} functions"
        raise LimitExceeded(message, "Induce the grammar from fewer programs, or with another merge level.")


def merge_types(slots: Mapping[Slot, Fillers]) -> dict[Slot, Fillers]:
    """Give slots that share a function or a constant, directly or through others, the union of their fillers."""
    parents: dict[Slot | Filler, Slot | Filler] = {}

    def root(node: Slot | Filler) -> Slot | Filler:
        while (parent := parents.setdefault(node, node)) != node:
            parents[node] = node = parents[parent]
        return node

    for slot, fillers in slots.items():
        for filler in fillers:
            if isinstance(filler, Function | Constant):
                parents[root(filler)] = root(slot)
    types: dict[Slot | Filler, Fillers] = {}
    for slot, fillers in slots.items():
        types.setdefault(root(slot), {}).update(fillers)
    return {slot: types[root(slot)] for slot in slots}


def merge_expressions(slots: Mapping[Slot, Fillers]) -> dict[Slot, Fillers]:
    """Give all slots that take a form the union of their fillers, except operators and the program itself."""
    general = [
        slot
        for slot, fillers in slots.items()
        if slot != ROOT_SLOT and slot.name != OPERATOR and any(isinstance(filler, Function) for filler in fillers)
    ]
    union = {filler: None for slot in general for filler in slots[slot]}
    return {**slots, **dict.fromkeys(general, union)}


def generalise_constants(slots: Mapping[Slot, Fillers]) -> dict[Slot, Fillers]:
    """Replace constants that differ from others only in a name or a number by patterns with any name or number."""
    words = {filler.word for fillers in slots.values() for filler in fillers if isinstance(filler, Constant)}
    names = {tuple(word.split(".")[: i + 1]) for word in words for i in range(word.count(".") + 1)}
    successors = Counter(name[:-1] for name in names if len(name) > 1)
    numbered = Counter(map(number_pattern, words))

    def generalised(filler: Filler) -> Filler:
        if isinstance(filler, Constant):
            *path, last = filler.word.split(".")
            if path and NAME.fullmatch(last) and max(successors[tuple(path)], successors[tuple(path[:-1])]) > 1:
                return ConstantPattern((Text(".".join(path) + "."), Ref("NAME")))
            if numbered[number_pattern(filler.word)] > 1:
                return ConstantPattern(number_pattern(filler.word))
        return filler

    return {slot: {generalised(filler): None for filler in fillers} for slot, fillers in slots.items()}


def number_pattern(word: str) -> Production:
    """Return a word with each of its numbers replaced by any number."""
    parts = re.split("([0-9]+)", word)
    return tuple(Ref("NATURAL") if i % 2 else Text(part) for i, part in enumerate(parts) if part)


def allowed_fillers(slot: Slot, fillers: Fillers) -> Iterator[Filler]:
    """Yield the fillers of a slot without those that another one includes.

    Words and literals are dropped from operator slots, where they would be read as the name of the function.
    """
    for filler in fillers:
        if slot.name == OPERATOR and not isinstance(filler, Function) and filler != QUOTED:
            continue
        if filler != LiteralClass("NATURAL") or LiteralClass("INTEGER") not in fillers:
            yield filler

"""Copy spans: free text must be a span of the utterance, from the start of a word to the end of a word."""

from collections.abc import Sequence
from typing import NamedTuple

from fewparse.errors import ConstraintError, UnknownName
from fewparse.grammar.parsing.forest import Forest, IntermediateNode, PackedNode, SymbolNode
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, fresh_name


class FreeText(NamedTuple):
    """The characters of a rule for free text: plain ones, and ones that are written after an escape mark."""

    plain: Chars
    escaped: tuple[tuple[str, Chars], ...] = ()

    def encoded(self, char: str) -> str | None:
        """Return how a character is written; None if it cannot be."""
        if char in self.plain:
            return char
        return next((mark + char for mark, chars in self.escaped if char in chars), None)

    def decoded(self, text: str) -> str | None:
        """Decode a written text; None if a character is not written in its one form."""
        found: list[str] = []
        at = 0
        while at < len(text):
            for mark in ("", *(mark for mark, _ in self.escaped)):
                end = at + len(mark) + 1
                char = text[end - 1 : end]
                if char and self.encoded(char) == text[at:end]:
                    found.append(char)
                    at = end
                    break
            else:
                return None
        return "".join(found)


def copied_characters(grammar: Grammar, names: Sequence[str]) -> dict[str, FreeText]:
    """Return the characters of each of these rules; raise an error for a rule that cannot be copied."""
    for name in names:
        if name not in grammar.rules:
            free = [rule for rule in grammar.rules if "__" not in rule and is_free_text(grammar, rule)]
            raise UnknownName(
                "rule to copy", name, free, "Change `copy` in domain.toml, or allow any text: --no-copy."
            )
    return {name: free_text(grammar, name) for name in names}


def copy_spans(grammar: Grammar, names: Sequence[str], utterance: str) -> Grammar:
    """Replace these rules by the spans of the utterance that consist of their characters."""
    for name, characters in copied_characters(grammar, names).items():
        grammar = grammar.with_rules(spans(grammar, name, characters, utterance))
    return grammar


def spans(grammar: Grammar, name: str, characters: FreeText, utterance: str) -> dict[str, tuple[Production, ...]]:
    """Return a rule per character of the utterance: the character, then the next rule or an end of word."""
    used_names = dict(grammar.rules)
    steps: list[str] = []
    for i in range(len(utterance)):
        steps.append(fresh_name(f"{name}_span_{i}", used_names))
        used_names[steps[-1]] = ()
    rules: dict[str, tuple[Production, ...]] = {
        name: tuple((Ref(steps[i]),) for i in range(len(utterance)) if starts_word(utterance, i))
    }
    for i, char in enumerate(utterance):
        productions: list[Production] = []
        if written := characters.encoded(char):
            if ends_word(utterance, i):
                productions.append((Text(written),))
            if i + 1 < len(utterance):
                productions.append((Text(written), Ref(steps[i + 1])))
        rules[steps[i]] = tuple(productions)
    return rules


def can_be_copied(forest: Forest, grammar: Grammar, names: tuple[str, ...], utterance: str) -> bool:
    """Return whether a text has a derivation in which these rules derive spans of the utterance."""
    characters = {name: free_text(grammar, name) for name in names}
    possible: set[SymbolNode] = set()
    growing = True
    while growing:
        before = len(possible)
        for node in forest.nodes:
            if node.name in characters:
                text = characters[node.name].decoded(forest.text[node.start : node.end])
                if text is not None and is_span(text, utterance):
                    possible.add(node)
            elif any(is_possible(packed, possible) for packed in node.packed):
                possible.add(node)
        growing = forest.cyclic and len(possible) > before
    return forest.root in possible


def is_possible(packed: PackedNode, possible: set[SymbolNode]) -> bool:
    """Return whether a packed node can be derived from possible nodes alone."""
    filled: set[IntermediateNode | None] = {None}
    for layer in packed.layers:
        for partial in layer:
            if any(
                split.before in filled and (isinstance(split.filler, str) or split.filler in possible)
                for split in partial.splits
            ):
                filled.add(partial)
    return packed.whole in filled


def is_span(text: str, utterance: str) -> bool:
    """Return whether a text occurs in an utterance from the start of a word to the end of a word."""
    at = utterance.find(text) if text else -1
    while at >= 0:
        if starts_word(utterance, at) and ends_word(utterance, at + len(text) - 1):
            return True
        at = utterance.find(text, at + 1)
    return False


def starts_word(text: str, i: int) -> bool:
    """Return whether a word, or punctuation between words, starts at this character."""
    return not text[i].isspace() and not (i > 0 and text[i - 1].isalnum() and text[i].isalnum())


def ends_word(text: str, i: int) -> bool:
    """Return whether a word, or punctuation between words, ends at this character."""
    return not text[i].isspace() and not (i + 1 < len(text) and text[i].isalnum() and text[i + 1].isalnum())


def is_free_text(grammar: Grammar, name: str) -> bool:
    """Return whether a rule has the form that can be copied."""
    try:
        free_text(grammar, name)
    except ConstraintError:
        return False
    return True


def free_text(grammar: Grammar, name: str) -> FreeText:
    """Return the characters of a rule that is one repeated character class: the only form that can be copied."""
    loop = unwrapped(grammar, Ref(name))
    productions = grammar.rules.get(loop.name, ()) if isinstance(loop, Ref) else ()
    plain = {tuple(unwrapped(grammar, symbol) for symbol in p) for p in productions}
    kinds = {symbol for p in plain for symbol in p if symbol != loop}
    kind = kinds.pop() if len(kinds) == 1 else None
    characters = None if kind is None else character(grammar, kind)
    once, again = {(), (kind,)}, {(loop, kind), (kind, loop)}
    if characters is None or not (plain & once and plain & again and plain <= once | again):
        raise ConstraintError(
            f"`{name}` cannot be copied: it is not one repeated character class",
            f'Write it as one, for example {name}: /[^"]+/, with the quotes outside.',
        )
    return characters


def character(grammar: Grammar, symbol: Symbol) -> FreeText | None:
    """Read a character class, or a rule with plain classes and escaped classes (a mark, then one of a class)."""
    if isinstance(symbol, Chars):
        return FreeText(symbol)
    plain: list[Chars] = []
    escaped: list[tuple[str, Chars]] = []
    for production in grammar.rules.get(symbol.name, ()) if isinstance(symbol, Ref) else ():
        match tuple(unwrapped(grammar, part) for part in production):
            case (Chars() as chars,):
                plain.append(chars)
            case (Text(text=mark), Chars() as chars):
                escaped.append((mark, chars))
            case _:
                return None
    joined = Chars.of(part for chars in plain for part in chars.ranges)
    return FreeText(joined, tuple(escaped)) if plain else None


def unwrapped(grammar: Grammar, symbol: Symbol) -> Symbol:
    """Resolve a rule that is only another name for one symbol."""
    for _ in grammar.rules:
        productions = grammar.rules.get(symbol.name, ()) if isinstance(symbol, Ref) else ()
        if len(productions) != 1 or len(productions[0]) != 1:
            break
        symbol = productions[0][0]
    return symbol

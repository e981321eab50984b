"""The copy option: free text must be a span of the utterance, from the start of a word to the end of one."""

from fewparse.errors import ConstraintError, UnknownName
from fewparse.grammar.forest import Forest, Node, Partial, Way
from fewparse.grammar.rules import Chars, Grammar, Production, Ref, Symbol, Text, fresh_name


def copy_spans(grammar: Grammar, names: tuple[str, ...], utterance: str) -> Grammar:
    """Replace the rules of these names by the spans of the utterance that consist of their characters."""
    for name in names:
        if name not in grammar.rules:
            written = [rule for rule in grammar.rules if "__" not in rule]
            raise UnknownName("rule to copy", name, written)
        grammar = grammar.with_rules(spans(grammar, name, utterance))
    return grammar


def spans(grammar: Grammar, name: str, utterance: str) -> dict[str, tuple[Production, ...]]:
    """A rule a character: say it and go on with the next, or stop where a word ends."""
    chars = repeated_chars(grammar, name)
    taken = dict(grammar.rules)
    steps: list[str] = []
    for i in range(len(utterance)):
        steps.append(fresh_name(f"{name}_span_{i}", taken))
        taken[steps[-1]] = ()
    rules: dict[str, tuple[Production, ...]] = {
        name: tuple((Ref(steps[i]),) for i in range(len(utterance)) if starts_word(utterance, i))
    }
    for i, char in enumerate(utterance):
        productions: list[Production] = []
        if char in chars:
            if ends_word(utterance, i):
                productions.append((Text(char),))
            if i + 1 < len(utterance):
                productions.append((Text(char), Ref(steps[i + 1])))
        rules[steps[i]] = tuple(productions)
    return rules


def can_be_copied(forest: Forest, names: tuple[str, ...], utterance: str) -> bool:
    """Whether a text has a derivation in which the constituents of these names are spans of the utterance."""
    possible: set[Node] = set()
    growing = True
    while growing:
        before = len(possible)
        for node in forest.nodes:
            if node.name in names:
                if is_span(forest.text[node.begin : node.end], utterance):
                    possible.add(node)
            elif any(is_possible(way, possible) for way in node.ways):
                possible.add(node)
        growing = forest.cyclic and len(possible) > before
    return forest.root in possible


def is_possible(way: Way, possible: set[Node]) -> bool:
    """Whether a production can be filled with possible nodes alone."""
    filled: set[Partial | None] = {None}
    for layer in way.layers:
        for partial in layer:
            if any(
                step.before in filled and (isinstance(step.filler, str) or step.filler in possible)
                for step in partial.steps
            ):
                filled.add(partial)
    return way.whole in filled


def is_span(text: str, utterance: str) -> bool:
    """Whether a text stands in an utterance from the start of a word to the end of one."""
    at = utterance.find(text) if text else -1
    while at >= 0:
        if starts_word(utterance, at) and ends_word(utterance, at + len(text) - 1):
            return True
        at = utterance.find(text, at + 1)
    return False


def starts_word(text: str, i: int) -> bool:
    """Whether a word, or a mark between words, begins at this character."""
    return not text[i].isspace() and not (i > 0 and text[i - 1].isalnum() and text[i].isalnum())


def ends_word(text: str, i: int) -> bool:
    """Whether a word, or a mark between words, ends with this character."""
    return not text[i].isspace() and not (i + 1 < len(text) and text[i].isalnum() and text[i + 1].isalnum())


def repeated_chars(grammar: Grammar, name: str) -> Chars:
    """The characters of a rule that is one character class, repeated: the only kind that can be copied."""
    loop = unwrapped(grammar, Ref(name))
    productions = grammar.rules.get(loop.name, ()) if isinstance(loop, Ref) else ()
    plain = {tuple(unwrapped(grammar, symbol) for symbol in p) for p in productions}
    classes = [s for p in plain for s in p if isinstance(s, Chars)]
    chars = classes[0] if classes else Chars(())
    once, again = {(), (chars,)}, {(loop, chars), (chars, loop)}
    if not (plain & once and plain & again and plain <= once | again):
        raise ConstraintError(
            f"`{name}` cannot be copied: it is not one repeated character class",
            f'Write it as one, for example {name}: /[^"]+/, with the quotes outside.',
        )
    return chars


def unwrapped(grammar: Grammar, symbol: Symbol) -> Symbol:
    """What a name stands for, as far as it is only another name for one symbol."""
    for _ in grammar.rules:
        productions = grammar.rules.get(symbol.name, ()) if isinstance(symbol, Ref) else ()
        if len(productions) != 1 or len(productions[0]) != 1:
            break
        symbol = productions[0][0]
    return symbol

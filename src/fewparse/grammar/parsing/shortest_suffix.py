"""Find the shortest suffix that completes a prefix to a sentence."""

import heapq
from collections import defaultdict

from fewparse.grammar.parsing.chart import ChartParser, ParseFailure
from fewparse.grammar.rules import Grammar, Ref, Symbol, Text
from fewparse.grammar.translation.shortest_strings import MAX_LENGTH, joined_text, shortest_texts


class Completer:
    """Completes prefixes of one grammar's sentences."""

    def __init__(self, grammar: Grammar) -> None:
        self._parser = ChartParser(grammar)
        self._shortest = shortest_texts(self._parser.grammar)
        self._rests: dict[int, str | None] = {}

    def shortest_suffix(self, prefix: str) -> str | None:
        """Return the shortest string that makes the prefix a sentence, ties by text; None if no string does.

        A string of more than `MAX_LENGTH` characters is not found.

        Dijkstra's algorithm over the open constituents of the Earley sets, from the whole sentence downwards:
        what must follow a constituent is what completes the constituent that contains it.
        """
        result = self._parser.parse_prefix(prefix)
        if isinstance(result, ParseFailure):
            return None
        automaton = self._parser.automaton
        sets, _ = result
        open_items = defaultdict(list)
        for position, earley_set in enumerate(sets):
            for item, origin in earley_set.items(position):
                open_items[automaton.names[item], origin].append((item, position))
        queue = [(0, "", self._parser.grammar.start, 0)]
        settled: set[tuple[str, int]] = set()
        best: str | None = None
        while queue:
            _, following, name, origin = heapq.heappop(queue)
            if (name, origin) in settled:
                continue
            settled.add((name, origin))
            for item, position in open_items[name, origin]:
                if position == len(prefix) and (rest := self._shortest_rest(item)) is not None:
                    suffix = rest + following
                    best = suffix if best is None else min(best, suffix, key=by_length)
                symbol = automaton.next_symbols[item]
                rest = self._shortest_rest(item + 1) if isinstance(symbol, Ref) else None
                if isinstance(symbol, Ref) and rest is not None and len(rest) + len(following) <= MAX_LENGTH:
                    after = rest + following
                    heapq.heappush(queue, (len(after), after, symbol.name, position))
        return best if best is None or len(best) <= MAX_LENGTH else None

    def _shortest_rest(self, item: int) -> str | None:
        """Return the shortest string of the symbols after an item's dot; None if it is too long."""
        if item not in self._rests:
            symbols, at, rest = self._parser.automaton.next_symbols, item, list[Symbol]()
            while (symbol := symbols[at]) is not None:
                rest.append(Text(symbol) if isinstance(symbol, str) else symbol)
                at += 1
            self._rests[item] = joined_text(rest, self._shortest)
        return self._rests[item]


def by_length(text: str) -> tuple[int, str]:
    """Return the sort key of strings: by length, then by text."""
    return len(text), text

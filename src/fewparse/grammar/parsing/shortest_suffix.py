"""Find the shortest suffix that completes a prefix to a sentence."""

import heapq
from collections import defaultdict

from fewparse.grammar.parsing.chart import ChartParser, ParseFailure
from fewparse.grammar.rules import Grammar, Ref
from fewparse.grammar.translation.shortest_strings import shortest_text, shortest_texts


class Completer:
    """Completes prefixes of one grammar's sentences."""

    def __init__(self, grammar: Grammar) -> None:
        self._parser = ChartParser(grammar)
        self._shortest = shortest_texts(self._parser.grammar)
        self._rests: dict[int, str] = {}

    def shortest_suffix(self, prefix: str) -> str | None:
        """Return the shortest string that makes the prefix a sentence, ties by text; None if no string does.

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
                if position == len(prefix):
                    suffix = self._shortest_rest(item) + following
                    best = suffix if best is None else min(best, suffix, key=by_length)
                if isinstance(symbol := automaton.next_symbols[item], Ref):
                    after = self._shortest_rest(item + 1) + following
                    heapq.heappush(queue, (len(after), after, symbol.name, position))
        return best

    def _shortest_rest(self, item: int) -> str:
        """Return the shortest string of the symbols after an item's dot."""
        if item not in self._rests:
            symbols, at, pieces = self._parser.automaton.next_symbols, item, list[str]()
            while (symbol := symbols[at]) is not None:
                pieces.append(symbol if isinstance(symbol, str) else shortest_text(symbol, self._shortest))
                at += 1
            self._rests[item] = "".join(pieces)
        return self._rests[item]


def by_length(text: str) -> tuple[int, str]:
    """Return the sort key of strings: by length, then by text."""
    return len(text), text

"""The shortest way to finish a text that begins a sentence."""

import heapq
from collections import defaultdict
from collections.abc import Iterator

from fewparse.grammar.parsing.chart import ChartParser, ParseFailure, Row
from fewparse.grammar.rules import Grammar, Ref
from fewparse.grammar.translation.shortest_strings import shortest_text, shortest_texts


class Completer:
    """Finishes texts of one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self._parser = ChartParser(grammar)
        self._shortest = shortest_texts(self._parser.grammar)
        self._rests: dict[int, str] = {}

    def complete(self, text: str) -> str | None:
        """The shortest text behind which this one is a sentence; None where it begins none.

        What a constituent needs behind its end is known once it is for those that wait for it: so it is found
        from the whole sentence downwards, the shortest first.
        """
        read = self._parser.read(text)
        if isinstance(read, ParseFailure):
            return None
        begun = defaultdict(list)
        for place, row in enumerate(read[0]):
            for item, origin in dotted(row, place):
                begun[self._parser.automaton.names[item], origin].append((item, place))
        queue = [(0, "", self._parser.grammar.start, 0)]
        known: set[tuple[str, int]] = set()
        found: str | None = None
        while queue:
            _, behind, name, origin = heapq.heappop(queue)
            if (name, origin) in known:
                continue
            known.add((name, origin))
            for item, place in begun[name, origin]:
                if place == len(text):
                    whole = self._rest(item) + behind
                    found = whole if found is None else min(found, whole, key=by_length)
                if isinstance(step := self._parser.automaton.behind[item], Ref):
                    after = self._rest(item + 1) + behind
                    heapq.heappush(queue, (len(after), after, step.name, place))
        return found

    def _rest(self, item: int) -> str:
        """The shortest text of what stands behind the dot."""
        if item not in self._rests:
            behind, at, pieces = self._parser.automaton.behind, item, list[str]()
            while (step := behind[at]) is not None:
                pieces.append(step if isinstance(step, str) else shortest_text(step, self._shortest))
                at += 1
            self._rests[item] = "".join(pieces)
        return self._rests[item]


def dotted(row: Row, place: int) -> Iterator[tuple[int, int]]:
    """The dotted rules of a place, with the places where they began."""
    for kernel, origin in row.items:
        for item in kernel.steps():
            yield item, origin
    for item in row.prediction.steps():
        yield item, place


def by_length(text: str) -> tuple[int, str]:
    """The order of texts: the shorter first, then by their letters."""
    return len(text), text

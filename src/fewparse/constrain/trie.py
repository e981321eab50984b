"""A finite set of strings as a byte trie; the token mask of a node is computed once and stored."""

from collections.abc import Iterable

import numpy as np

from fewparse.constrain.state import Constraint, State
from fewparse.errors import ConstraintError, LimitExceeded
from fewparse.vocabulary import Mask, Vocabulary

MAX_NODES = 5_000_000


class TrieNode:
    """A trie node: its children by byte, and whether a string ends here."""

    __slots__ = ("children", "mask", "terminal")

    def __init__(self) -> None:
        self.children: dict[int, TrieNode] = {}
        self.terminal = False
        self.mask: Mask | None = None


class TrieState(State):
    """The state at a trie node."""

    __slots__ = ("_node", "vocabulary")

    def __init__(self, node: TrieNode, vocabulary: Vocabulary) -> None:
        self._node = node
        self.vocabulary = vocabulary

    @property
    def may_end(self) -> bool:
        """Whether a string of the set ends here."""
        return self._node.terminal

    def advance(self, piece: bytes) -> State | None:
        """Descend the trie byte by byte."""
        node: TrieNode | None = self._node if piece else None
        for byte in piece:
            node = node.children.get(byte) if node else None
        return TrieState(node, self.vocabulary) if node else None

    def mask(self) -> Mask:
        """Return the tokens that lead to another node."""
        if self._node.mask is None:
            self._node.mask = token_mask(self._node, self.vocabulary)
        return self._node.mask


class Trie(Constraint):
    """One of a finite set of strings."""

    def __init__(self, strings: Iterable[str], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._root = TrieNode()
        count = 0
        for string in strings:
            node = self._root
            for byte in string.encode():
                following = node.children.get(byte)
                if following is None:
                    following = node.children[byte] = TrieNode()
                    count += 1
                node = following
            node.terminal = True
            if count > MAX_NODES:
                raise LimitExceeded(f"the strings need more than {MAX_NODES} trie nodes", "Use a grammar instead.")
        if not self._root.children and not self._root.terminal:
            raise ConstraintError("the set of strings is empty, so no output is possible")

    def start(self) -> State:
        """Return the state at the root."""
        return TrieState(self._root, self.vocabulary)


def token_mask(start: TrieNode, vocabulary: Vocabulary) -> Mask:
    """Return the tokens whose bytes lead from a node to a node.

    Along nodes with one child, tokens are looked up. At a branching, the sorted vocabulary shows whether there are
    longer ones.
    """
    found: list[int] = []
    frontier = [(start, b"", *vocabulary.with_prefix(b""))]
    while frontier:
        node, text, low, high = frontier.pop()
        for byte, child in node.children.items():
            path = text + bytes([byte])
            found += vocabulary.ids_of(path)
            while len(child.children) == 1 and len(path) < vocabulary.longest:
                ((byte, child),) = child.children.items()
                path += bytes([byte])
                found += vocabulary.ids_of(path)
            if len(child.children) > 1:
                first, last = vocabulary.with_prefix(path, low, high)
                longer = vocabulary.after_equal(path, first, last)
                if longer < last:
                    frontier.append((child, path, longer, last))
    mask = np.zeros(len(vocabulary), dtype=np.bool_)
    mask[found] = True
    mask.flags.writeable = False
    return mask

"""Many constraints whose strings start with distinct heads; each is compiled when its head is reached.

A string is one item, or a list of items between brackets. An item belongs to the constraint of its head. Compiling
all constraints as one grammar would exceed the limits of the engine if there are hundreds of them.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property

from fewparse.constrain.state import Constraint, State, dead_end
from fewparse.constrain.trie import TrieNode, token_mask
from fewparse.vocabulary import Mask, Vocabulary

OPENING, CLOSING = b"[", b"]"


class HeadTrie:
    """The heads of all items as tries: where a string starts and, in a list, after an item.

    No head is a prefix of another one. `separator` is the text between the items of a list; None if a string is
    one item. Every item ends with the byte `last`, and no item is a proper prefix of another one.
    """

    def __init__(self, heads: Iterable[str], separator: str | None, last: str, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.heads = [head.encode() for head in heads]
        self.item_ends = re.compile(re.escape(last.encode()))
        self._keys: dict[TrieNode, int | None] = {}
        self.start = self._trie(OPENING if separator is not None else b"", None)
        self.after = None if separator is None else self._trie(separator.encode(), CLOSING)

    def _trie(self, before: bytes, closing: bytes | None) -> TrieNode:
        """Return the trie of all heads after a text, and of the end of a list."""
        root = TrieNode()
        for key, head in enumerate(self.heads):
            self._keys[descend(root, before + head)] = key
        if closing is not None:
            self._keys[descend(root, closing)] = None
        return root

    def is_leaf(self, node: TrieNode) -> bool:
        """Return whether a head, or the list, ends at a node."""
        return node in self._keys

    def key(self, node: TrieNode) -> int | None:
        """Return the index of the head that ends at a leaf; None at the end of the list."""
        return self._keys[node]

    def crossing_heads(self, node: TrieNode) -> list[int]:
        """Return the tokens that go from a node through a whole head and continue after it."""
        found: list[int] = []
        frontier = [(node, b"", *self.vocabulary.with_prefix(b""))]
        while frontier:
            here, path, low, high = frontier.pop()
            for byte, child in here.children.items():
                prefix = path + bytes([byte])
                first, last = self.vocabulary.with_prefix(prefix, low, high)
                longer = self.vocabulary.after_equal(prefix, first, last)
                if self.is_leaf(child):
                    found += [] if self.key(child) is None else self.vocabulary.ids_at(longer, last).tolist()
                elif longer < last:
                    frontier.append((child, prefix, longer, last))
        return found

    @cached_property
    def crossing_items(self) -> dict[bytes, list[tuple[int, bytes]]]:
        """The tokens that may end an item and continue the list: by their part in the item, id and other part."""
        found: dict[bytes, list[tuple[int, bytes]]] = {}
        following = frozenset(self.after.children) if self.after else frozenset()
        for i, token in enumerate(self.vocabulary.tokens) if following else ():
            for end in self.item_ends.finditer(token):
                if token[end.end() : end.end() + 1] and token[end.end()] in following:
                    found.setdefault(token[: end.end()], []).append((i, token[end.end() :]))
        return found


def descend(node: TrieNode, text: bytes) -> TrieNode:
    """Return the node of a text below a node; missing nodes are added."""
    for byte in text:
        node = node.children.setdefault(byte, TrieNode())
    return node


class Dispatch(Constraint):
    """The strings of many constraints; `open_item` returns that of the items with the head of an index."""

    def __init__(self, heads: HeadTrie, open_item: Callable[[int], Constraint]) -> None:
        self.heads = heads
        self.vocabulary = heads.vocabulary
        self._open_item = open_item
        self._items: dict[int, Constraint] = {}
        self._masks: dict[TrieNode, Mask] = {}

    def start(self) -> State:
        """Return the state before the first head."""
        return HeadState(self, self.heads.start)

    def accepts(self, text: bytes) -> bool:
        """Return whether a string is well-formed; one item is judged by its own constraint."""
        state = self.start().advance(text) if text else None
        if isinstance(state, ItemState):
            return self.heads.after is None and self.item(state.key).accepts(text)
        return state is not None and state.may_end

    def item(self, key: int) -> Constraint:
        """Return the constraint of the items with the head of an index."""
        if key not in self._items:
            self._items[key] = self._open_item(key)
        return self._items[key]

    def enter(self, key: int, rest: bytes) -> State | None:
        """Return the state in an item after its head and further bytes."""
        head = self.heads.heads[key]
        inner = self.item(key).start().advance(head)
        state = None if inner is None else ItemState(self, key, inner, head)
        return state.advance(rest) if state is not None and rest else state

    def head_mask(self, state: "HeadState") -> Mask:
        """Return the mask of a state before an item; it is computed once for each node."""
        node = state.node
        if node not in self._masks:
            if node.mask is None:
                node.mask = token_mask(node, self.vocabulary)
            mask = node.mask.copy()
            for i in self.heads.crossing_heads(node):
                mask[i] = state.advance(self.vocabulary.tokens[i]) is not None
            mask.flags.writeable = False
            self._masks[node] = mask
        return self._masks[node]

    def ending(self, text: bytes) -> bytes | None:
        """Return the suffix that the constraint of the present item finds, and the end of the list."""
        state = self.start().advance(text) if text else self.start()
        suffix = b""
        if isinstance(state, HeadState):
            suffix, state = state.nearest_leaf()
        if not isinstance(state, ItemState):
            return None if state is None else suffix
        rest = self.item(state.key).ending(state.text)
        return None if rest is None else suffix + rest + (b"" if self.heads.after is None else CLOSING)


class HeadState(State):
    """A state in the text before an item, or at the end of a list."""

    def __init__(self, constraint: Dispatch, node: TrieNode) -> None:
        self.vocabulary = constraint.vocabulary
        self._constraint = constraint
        self.node = node

    @property
    def may_end(self) -> bool:
        """Whether the list has ended."""
        return self._constraint.heads.is_leaf(self.node)

    def advance(self, piece: bytes) -> State | None:
        """Descend the trie, and enter an item where its head ends."""
        heads, node = self._constraint.heads, self.node
        for i, byte in enumerate(piece, 1):
            child = node.children.get(byte)
            if child is None:
                return None
            node = child
            if heads.is_leaf(node) and (key := heads.key(node)) is not None:
                return self._constraint.enter(key, piece[i:])
        return HeadState(self._constraint, node) if piece else None

    def mask(self) -> Mask:
        """Return the tokens that lead to another node of the trie, or into an item."""
        return self._constraint.head_mask(self)

    def nearest_leaf(self) -> tuple[bytes, State | None]:
        """Return the shortest text to the end of a head or of the list, and the state there."""
        level = [(b"", self.node)]
        while level:
            for text, node in level:
                if self._constraint.heads.is_leaf(node):
                    return text, self.advance(text) if text else self
            level = [(t + bytes([b]), child) for t, node in level for b, child in sorted(node.children.items())]
        raise dead_end()


class ItemState(State):
    """A state within an item: that of the item's own constraint, after the text of the item so far."""

    def __init__(self, constraint: Dispatch, key: int, inner: State, text: bytes) -> None:
        self.vocabulary = constraint.vocabulary
        self._constraint = constraint
        self._inner = inner
        self.key = key
        self.text = text

    @property
    def may_end(self) -> bool:
        """Whether the item is the whole string, and may end."""
        return self._constraint.heads.after is None and self._inner.may_end

    def advance(self, piece: bytes) -> State | None:
        """Advance within the item or, in a list, past its end."""
        inner = self._inner.advance(piece)
        after = self._constraint.heads.after
        if inner is not None:
            if after is not None and inner.may_end:
                return HeadState(self._constraint, after)
            return ItemState(self._constraint, self.key, inner, self.text + piece)
        for end in self._constraint.heads.item_ends.finditer(piece) if after is not None else ():
            inner = self._inner.advance(piece[: end.end()])
            if inner is None:
                return None
            if after is not None and inner.may_end:
                return HeadState(self._constraint, after).advance(piece[end.end() :])
        return None

    def mask(self) -> Mask:
        """Return the mask of the item and, in a list, the tokens that end the item and continue the list."""
        return self._mask

    @cached_property
    def _mask(self) -> Mask:
        mask = self._inner.mask()
        crossing = [i for ends in self._crossing_ends(mask) for i in ends]
        if crossing:
            mask = mask.copy()
            mask[crossing] = True
        return mask

    def _crossing_ends(self, mask: Mask) -> Iterable[list[int]]:
        """Yield the tokens that end the item and continue the list, for each part of them that is in the item."""
        heads, ids = self._constraint.heads, self.vocabulary.ids
        if heads.after is None:
            return
        after = HeadState(self._constraint, heads.after)
        for end, continuations in heads.crossing_items.items():
            if end in ids and not mask[ids[end]]:
                continue
            inner = self._inner.advance(end)
            if inner is not None and inner.may_end:
                yield [i for i, rest in continuations if after.advance(rest) is not None]

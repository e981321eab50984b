"""A derivation as a tree of labelled nodes and text, in which a word is one text and not a chain of characters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from fewparse.grammar.parsing.forest import Shape, Tree
from fewparse.grammar.translation.kbest import Derivation

MIN_COLLAPSED_RUN = 4
"""The least number of nested nodes with one character each that are shown as one text."""


@dataclass(frozen=True, eq=False)
class DerivationTree:
    """A node of a derivation: its nonterminal as label, and its children, which are nodes and texts.

    `translation` is the text of the node on the other side; None for a derivation of one side alone.
    """

    label: str
    children: tuple["DerivationTree | str", ...]
    translation: str | None = None

    def annotation(self, parent_translation: str | None) -> str | None:
        """Return the translation, unless it equals the node's own text or the translation of its parent."""
        translated = (self.translation,) if self.translation else ()
        redundant = self.translation == parent_translation or self.children == translated
        return None if redundant else self.translation


Source = TypeVar("Source", Tree, Derivation)


class NodeView(NamedTuple, Generic[Source]):
    """A node of a source derivation: its label, its translation, and its texts and inner nodes in order."""

    label: str
    translation: str | None
    parts: list[Source | str]


def from_parse_tree(tree: Tree) -> DerivationTree:
    """Convert a parse tree of one side."""
    return build(
        tree, lambda node: NodeView(label_of(node.shape.name), None, interleave(node.shape, node.fillers))
    )


def from_derivation(derivation: Derivation) -> DerivationTree:
    """Convert the derivation of a source text, with the target text of each node as its translation."""

    def view(node: Derivation) -> NodeView[Derivation]:
        return NodeView(label_of(node.node.name), node.text, interleave(node.template.shape, node.fillers))

    return build(derivation, view)


def label_of(name: str) -> str:
    """Return a nonterminal as written in the grammar; a generated name of an optional symbol becomes `symbol?`."""
    kind, mark, symbol = name.partition("maybe___nt_")
    return name if kind or not mark else f"{symbol}?"


def interleave(shape: Shape, fillers: tuple[Source | str, ...]) -> list[Source | str]:
    """Return the texts and the fillers of a production, in order."""
    parts: list[Source | str] = []
    for slot, filler in zip(shape.slots, fillers, strict=True):
        parts += [slot.before, filler]
    parts.append(shape.tail)
    return list(filter(None, parts))


@dataclass(slots=True, eq=False)
class NodeBuilder(Generic[Source]):
    """A node under construction.

    `pending` are the parts still to be built, last first. `size` is the length of the node's text. `run` is the
    number of nested nodes with one character each that the node consists of; 0 if it consists of anything else.
    """

    view: NodeView[Source]
    pending: list[Source | str]
    parts: "list[NodeBuilder[Source] | str]"
    size: int = 0
    run: int = 0
    tree: DerivationTree | None = None

    def finish(self) -> None:
        """Build the tree, collapsing the runs among the parts that this node does not continue."""
        label = self.view.label
        same = [part for part in self.parts if isinstance(part, NodeBuilder) and part.view.label == label]
        chain = same[0] if len(same) == 1 and same[0].run and self._adds_a_character(same[0]) else None
        self.run = chain.run + 1 if chain else int(self.size <= 1)
        children = [built(part) if part is chain else collapsed(part) for part in self.parts]
        self.tree = DerivationTree(label, merge_texts(children), self.view.translation)
        self.parts = []

    def _adds_a_character(self, chain: "NodeBuilder[Source]") -> bool:
        """Return whether this node is a run and one more character, which may be escaped."""
        added = self.size - chain.size
        others = (text_of(built(part)) for part in self.parts if part is not chain)
        return added <= 1 or (added == 2 and "".join(others).startswith("\\"))


def built(part: NodeBuilder[Source] | str) -> DerivationTree | str:
    """Return the finished tree of a part, or the part itself if it is text."""
    if isinstance(part, str):
        return part
    assert part.tree is not None, "children are finished before their parent"
    return part.tree


def collapsed(part: NodeBuilder[Source] | str) -> DerivationTree | str:
    """Return a finished part; a long run that is not changed by translation has its text as only child."""
    tree = built(part)
    if isinstance(part, str) or isinstance(tree, str) or part.run < MIN_COLLAPSED_RUN:
        return tree
    text = text_of(tree)
    return DerivationTree(tree.label, (text,), tree.translation) if tree.translation in (None, text) else tree


def build(root: Source, view: Callable[[Source], NodeView[Source]]) -> DerivationTree:
    """Build the tree of a derivation, without recursion."""

    def new_builder(node: Source) -> NodeBuilder[Source]:
        viewed = view(node)
        return NodeBuilder(viewed, viewed.parts[::-1], [])

    stack = [new_builder(root)]
    while True:
        top = stack[-1]
        if top.pending:
            part = top.pending.pop()
            if isinstance(part, str):
                top.parts.append(part)
                top.size += len(part)
            else:
                stack.append(new_builder(part))
            continue
        stack.pop().finish()
        if not stack:
            whole = collapsed(top)
            assert isinstance(whole, DerivationTree)
            return whole
        stack[-1].parts.append(top)
        stack[-1].size += top.size


def merge_texts(children: list[DerivationTree | str]) -> tuple[DerivationTree | str, ...]:
    """Concatenate adjacent texts."""
    result: list[DerivationTree | str] = []
    for child in children:
        if isinstance(child, str) and result and isinstance(last := result[-1], str):
            result[-1] = last + child
        else:
            result.append(child)
    return tuple(result)


def text_of(tree: DerivationTree | str) -> str:
    """Return the text that a tree derives."""
    pieces: list[str] = []
    stack = [tree]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            pieces.append(top)
        else:
            stack += reversed(top.children)
    return "".join(pieces)

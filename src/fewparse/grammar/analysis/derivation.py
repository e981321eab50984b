"""A derivation as a plain tree of names and texts, in which a word is one text and not a stair of characters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from fewparse.grammar.parsing.forest import Shape, Tree
from fewparse.grammar.translation.kbest import Reading

SHORTEST_FOLDED = 4
"""As many characters, a name around each, are shown as one text."""


@dataclass(frozen=True, eq=False)
class Branch:
    """A part of a text that has a name, with what it is made of: other branches, and text.

    `detail` is what it means; None where that is not the question.
    """

    label: str
    children: tuple["Branch | str", ...]
    detail: str | None = None

    def note(self, around: str | None) -> str | None:
        """The detail, unless it is the very text, or that of what is around."""
        said_already = self.detail == around or self.children == ((self.detail,) if self.detail else ())
        return None if said_already else self.detail


Source = TypeVar("Source", Tree, Reading)


class Glimpse(NamedTuple, Generic[Source]):
    """What a derivation shows of one of its nodes."""

    label: str
    detail: str | None
    parts: list[Source | str]


def of_tree(tree: Tree) -> Branch:
    """A derivation of one side."""
    return grow(tree, lambda node: Glimpse(label_of(node.shape.name), None, spread(node.shape, node.fillers)))


def of_reading(reading: Reading) -> Branch:
    """The derivation of a source text, with the target text of each part as its detail."""

    def look(node: Reading) -> Glimpse[Reading]:
        return Glimpse(label_of(node.node.name), node.text, spread(node.option.shape, node.fillers))

    return grow(reading, look)


def label_of(name: str) -> str:
    """The name as it was written: optional symbols have names of their own, which nobody wrote."""
    kind, mark, symbol = name.partition("maybe___nt_")
    return name if kind or not mark else f"{symbol}?"


def spread(shape: Shape, fillers: tuple[Source | str, ...]) -> list[Source | str]:
    """The texts and the fillers of a production, in order."""
    parts: list[Source | str] = []
    for slot, filler in zip(shape.slots, fillers, strict=True):
        parts += [slot.before, filler]
    parts.append(shape.tail)
    return list(filter(None, parts))


@dataclass(slots=True, eq=False)
class Growing(Generic[Source]):
    """A branch that is being made.

    `size` is the length of its text. `run` counts the names within each other, each with one character, that it is
    made of; 0 if it is made of anything else.
    """

    glimpse: Glimpse[Source]
    left: list[Source | str]
    parts: "list[Growing[Source] | str]"
    size: int = 0
    run: int = 0
    branch: Branch | None = None

    def finish(self) -> None:
        """Make the branch, with those runs folded that do not go on in it."""
        label = self.glimpse.label
        same = [part for part in self.parts if isinstance(part, Growing) and part.glimpse.label == label]
        chain = same[0] if len(same) == 1 and same[0].run and self._adds_a_character(same[0]) else None
        self.run = chain.run + 1 if chain else int(self.size <= 1)
        children = [unfolded(part) if part is chain else folded(part) for part in self.parts]
        self.branch = Branch(label, joined(children), self.glimpse.detail)
        self.parts = []

    def _adds_a_character(self, chain: "Growing[Source]") -> bool:
        """Whether this is a run and one character more, which may be escaped."""
        added = self.size - chain.size
        others = (text_of(unfolded(part)) for part in self.parts if part is not chain)
        return added <= 1 or (added == 2 and "".join(others).startswith("\\"))


def unfolded(part: Growing[Source] | str) -> Branch | str:
    """A part as it was made."""
    if isinstance(part, str):
        return part
    assert part.branch is not None, "parts are made before wholes"
    return part.branch


def folded(part: Growing[Source] | str) -> Branch | str:
    """A part, or only the text of it if it is a long run that means itself."""
    branch = unfolded(part)
    if isinstance(part, str) or isinstance(branch, str) or part.run < SHORTEST_FOLDED:
        return branch
    text = text_of(branch)
    return Branch(branch.label, (text,), branch.detail) if branch.detail in (None, text) else branch


def grow(root: Source, look: Callable[[Source], Glimpse[Source]]) -> Branch:
    """The branches of a derivation, without recursion."""

    def begin(node: Source) -> Growing[Source]:
        glimpse = look(node)
        return Growing(glimpse, glimpse.parts[::-1], [])

    stack = [begin(root)]
    while True:
        top = stack[-1]
        if top.left:
            part = top.left.pop()
            if isinstance(part, str):
                top.parts.append(part)
                top.size += len(part)
            else:
                stack.append(begin(part))
            continue
        stack.pop().finish()
        if not stack:
            whole = folded(top)
            assert isinstance(whole, Branch)
            return whole
        stack[-1].parts.append(top)
        stack[-1].size += top.size


def joined(children: list[Branch | str]) -> tuple[Branch | str, ...]:
    """Texts that stand side by side are one."""
    result: list[Branch | str] = []
    for child in children:
        if isinstance(child, str) and result and isinstance(last := result[-1], str):
            result[-1] = last + child
        else:
            result.append(child)
    return tuple(result)


def text_of(branch: Branch | str) -> str:
    """The text that a branch stands for."""
    pieces: list[str] = []
    stack = [branch]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            pieces.append(top)
        else:
            stack += reversed(top.children)
    return "".join(pieces)

"""Where a prefix of a compact JSON text ends: the open objects and arrays, and what they contain so far.

The texts are prefixes of well-formed JSON, which the engine ensures. The scan finds keys that are repeated, and
items that are repeated where a schema demands that they are unique.
"""

import json
from collections.abc import Hashable
from dataclasses import dataclass, replace

from fewparse.json_schema.emitted import comparable
from fewparse.json_schema.places import Place

QUOTE, BACKSLASH, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = b'"\\,{}[]'


DIGITS, EXPONENT, EXPONENT_OR_POINT, NUMBER = b"0123456789", b"eE", b".eE", b"0123456789+-.eE"
MAX_INTEGER_DIGITS = 200
MAX_EXPONENT_DIGITS = 2


class Rejected(Exception):
    """A key or an item that occurs twice and must not, or a number that is too large for a float."""


@dataclass(frozen=True, slots=True)
class Frame:
    """An open object or array.

    `used` are its keys, or the items of an array whose items are unique, as texts; `values` are these items as
    values. `start` is the offset of the key or item that is under way; None if there is none.
    """

    place: Place
    is_object: bool
    unique: bool
    used: frozenset[bytes] = frozenset()
    values: frozenset[Hashable] = frozenset()
    start: int | None = None
    count: int = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """The open frames, the innermost last, and whether the text ends in a string, an escape or a key.

    `place` is the place in the schema of the next value. `digits` is the number of digits of a number under way,
    before its exponent, and `exponent` those of its exponent.
    """

    place: Place
    frames: tuple[Frame, ...] = ()
    in_string: bool = False
    escaped: bool = False
    in_key: bool = False
    before_key: bool = False
    digits: int = 0
    exponent: int | None = None

    @property
    def elements(self) -> list[Frame]:
        """The frames in which a key, or an item that must be unique, is under way or must follow."""
        found = [frame for frame in self.frames if frame.unique and frame.start is not None]
        return [*found, self.frames[-1]] if self.in_key or self.before_key else found

    def after(self, text: bytes, offset: int) -> "Scan":
        """Return the scan after the bytes of a text from an offset on; raise `Rejected` for a repetition."""
        scan = self
        for at in range(offset, len(text)):
            scan = scan._in_string(text, at) if scan.in_string else scan._outside(text, at)
        return scan

    def _in_string(self, text: bytes, at: int) -> "Scan":
        byte = text[at]
        if self.escaped or byte == BACKSLASH:
            return replace(self, escaped=not self.escaped)
        if byte != QUOTE:
            return self
        if not self.in_key:
            return replace(self, in_string=False)._completed(text, at + 1)
        frame = self.frames[-1]
        key = text[frame.start : at + 1]
        if key in frame.used:
            raise Rejected
        place = frame.place.member(json.loads(key))
        closed = replace(frame, used=frame.used | {key}, start=None)
        return replace(self, place=place, frames=(*self.frames[:-1], closed), in_string=False, in_key=False)

    def _outside(self, text: bytes, at: int) -> "Scan":
        byte = text[at]
        if byte in NUMBER:
            return self._in_number(byte)
        if self.digits:
            return replace(self, digits=0, exponent=None)._outside(text, at)
        if byte == QUOTE:
            if not self.before_key:
                return replace(self, in_string=True)
            frame = replace(self.frames[-1], start=at)
            frames = (*self.frames[:-1], frame)
            return replace(self, frames=frames, in_string=True, in_key=True, before_key=False)
        if byte in (OPEN_BRACE, OPEN_BRACKET):
            is_object = byte == OPEN_BRACE
            frame = Frame(
                self.place,
                is_object,
                not is_object and self.place.has_unique_items,
                start=None if is_object else at + 1,
            )
            return replace(
                self,
                place=frame.place.item(0) if not is_object else self.place,
                frames=(*self.frames, frame),
                before_key=is_object,
            )
        if byte in (CLOSE_BRACE, CLOSE_BRACKET):
            inner = self._completed(text, at)
            return replace(inner, frames=inner.frames[:-1], before_key=False)._completed(text, at + 1)
        if byte == COMMA:
            inner = self._completed(text, at)
            frame = inner.frames[-1]
            if frame.is_object:
                return replace(inner, before_key=True)
            following = replace(frame, start=at + 1, count=frame.count + 1)
            return replace(inner, place=frame.place.item(following.count), frames=(*inner.frames[:-1], following))
        return self

    def _in_number(self, byte: int) -> "Scan":
        """Return the scan after a byte of a number (or of a word, which is no longer than one)."""
        if byte in EXPONENT_OR_POINT and self.digits > MAX_INTEGER_DIGITS:
            raise Rejected
        if byte in EXPONENT:
            return replace(self, exponent=0) if self.digits else self
        if byte not in DIGITS:
            return self
        if self.exponent is None:
            return replace(self, digits=self.digits + 1)
        if self.exponent == MAX_EXPONENT_DIGITS:
            raise Rejected
        return replace(self, exponent=self.exponent + 1)

    def _completed(self, text: bytes, end: int) -> "Scan":
        """Return the scan after a value that ends before an offset, if one is under way."""
        frame = self.frames[-1] if self.frames else None
        if frame is None or frame.is_object or frame.start is None or frame.start == end:
            return self
        done = replace(frame, start=None)
        if frame.unique:
            item = text[frame.start : end]
            value = comparable(json.loads(item))
            if value in frame.values:
                raise Rejected
            done = replace(done, used=frame.used | {item}, values=frame.values | {value})
        return replace(self, frames=(*self.frames[:-1], done))

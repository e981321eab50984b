"""Find and mask secrets in the text of servers, also in parts, in other cases and in usual encodings."""

import base64
import re
import string
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote

MIN_SECRET_LENGTH = 6
"""Shorter user names and query values are not secrets: they would match parts of ordinary words."""
PARTS_FROM, HALVES_FROM, PART = 16, 12, 8
"""Letters and digits: of a secret of 16 or more, parts of 8 are masked; of one of 12 or more, halves."""
REFUSED_FROM, UNCACHED_FROM, BLOCK = 12, 8, 10
"""Shorter secrets occur in a whole response by chance: some keys are placeholders such as `lm-studio`."""
MAX_MASKED_LENGTH = 20_000
MASK = "***"
# An escape of URLs, JSON or HTML, a line break or tab of JSON, or a letter or digit.
ESCAPED = r"%([2-7][0-9A-Fa-f])|\\u00([2-7][0-9A-Fa-f])|&#x([2-7][0-9A-Fa-f]);|\\[bfnrt]"
ESCAPE, CHARACTER = re.compile(ESCAPED.encode()), re.compile(rf"{ESCAPED}|([0-9A-Za-z])")
ESCAPE_STARTS = (b"%", b"\\", b"&#x")
ALPHANUMERIC = (string.ascii_letters + string.digits).encode()
OTHERS = bytes(set(range(256)) - set(ALPHANUMERIC))
LOWER = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())


class Form(NamedTuple):
    """A secret in one encoding, only its letters and digits, in lower case; parts of `part` of them reveal it.

    `length` is the number of letters and digits of the secret itself.
    """

    text: str
    part: int
    length: int

    def blocks(self) -> Iterator[bytes]:
        """Yield overlapping parts, so that a response that holds a long part of the secret holds one of them."""
        whole = self.length < PARTS_FROM
        size = len(self.text) if whole else min(len(self.text), max(BLOCK, self.part, len(self.text) // 3))
        for start in (*range(0, len(self.text) - size, max(1, size // 2)), len(self.text) - size):
            yield self.text[start : start + size].encode()


class Secrets:
    """The secrets of one connection: the API key and the password, and possibly the user name and the query.

    The query may have a version or a name instead of a secret: whole responses are searched for long values only.
    """

    def __init__(self, key: str | None, address: SplitResult) -> None:
        certain = {key or "", address.password or "", unquote(address.password or "")} - {""}
        values = {address.username or "", *(value for _, value in parse_qsl(address.query))}
        likely = {value for value in values if len(value) >= MIN_SECRET_LENGTH}
        # Longest first: one may contain another.
        self._values = sorted((certain | likely | {address.query}) - {""}, key=len, reverse=True)
        sure = [form for value in certain for form in forms_of(value)]
        other = [form for value in likely for form in forms_of(value)]
        self._parts: dict[int, set[str]] = {}
        for form in sure + other:
            windows = (form.text[i : i + form.part] for i in range(len(form.text) - form.part + 1))
            self._parts.setdefault(form.part, set()).update(windows)
        self._refused = blocks_of(sure, REFUSED_FROM) + blocks_of(other, PARTS_FROM)
        self._uncached = blocks_of(sure, UNCACHED_FROM) + blocks_of(other, PARTS_FROM)

    def mask(self, text: str) -> str:
        """Return a text, cut to `MAX_MASKED_LENGTH`, with all secrets and revealing parts of them masked."""
        text = text[:MAX_MASKED_LENGTH]
        for value in self._values:
            text = text.replace(value, MASK)
        found = [match for match in CHARACTER.finditer(text) if character(match).isalnum()]
        letters = "".join(map(character, found))
        spans: list[tuple[int, int]] = []
        for length, windows in self._parts.items():
            for i in range(len(letters) - length + 1):
                if letters[i : i + length] in windows:
                    spans.append((found[i].start(), found[i + length - 1].end()))
        pieces, end = [], 0
        for start, stop in merged(spans):
            pieces += [text[end:start], MASK]
            end = stop
        return "".join(pieces) + text[end:]

    def refuse(self, data: bytes) -> bool:
        """Return whether a response must not be used, because it holds a secret or a long part of one."""
        return contains(data, self._refused)

    def keep(self, data: bytes) -> bool:
        """Return whether a response may be stored: it holds no secret, not even a short one."""
        return not contains(data, self._uncached)


def forms_of(secret: str) -> Iterator[Form]:
    """Yield a secret of at least six letters and digits as text, as hexadecimal digits and in base 64."""
    text, data = normalised(secret), secret.encode()
    length = len(text)
    if length < MIN_SECRET_LENGTH:
        return
    part = PART if length >= PARTS_FROM else length // 2 if length >= HALVES_FROM else length
    yield Form(text, part, length)
    yield Form(data.hex(), len(data.hex()) * part // length, length)
    for before in range(3):  # what precedes the secret shifts its encoding
        encoded = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        end = len(encoded) - bool((before + len(data)) % 3)
        shifted = normalised(encoded[(0, 2, 3)[before] : end])
        yield Form(shifted, len(shifted) if part == length else len(shifted) * part // length, length)


def normalised(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return text.encode(errors="replace").translate(LOWER, OTHERS).decode()


def character(match: re.Match[str]) -> str:
    """Return the character that a match of `CHARACTER` stands for, in lower case; a space for a line break."""
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)).lower() if code else (match[4] or " ").lower()


def unescaped(match: re.Match[bytes]) -> bytes:
    """Return the character that a match of `ESCAPE` stands for; a space for a line break."""
    code = match[1] or match[2] or match[3]
    return bytes.fromhex(code.decode()) if code else b" "


def blocks_of(forms: Iterable[Form], least: int) -> tuple[bytes, ...]:
    """Return the blocks of the secrets with at least this many letters and digits."""
    return tuple({block for form in forms if form.length >= least for block in form.blocks()})


def contains(data: bytes, blocks: tuple[bytes, ...]) -> bool:
    """Return whether the letters and digits of some data contain one of these blocks, also behind escapes."""
    if not blocks:
        return False
    texts = [data.translate(LOWER, OTHERS)]
    if any(start in data for start in ESCAPE_STARTS):  # much faster than a search for the pattern
        texts.append(ESCAPE.sub(unescaped, data).translate(LOWER, OTHERS))
    return any(block in text for text in texts for block in blocks)


def merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return overlapping spans as one, in order."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined

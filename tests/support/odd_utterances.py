"""Utterances of many kinds that users and adversaries type, made from a random generator."""

import random
from collections.abc import Callable

PLAIN = "add a meeting called budget review with Ann on friday at ten"
CHAT = ["<|im_start|>system\n", "<|im_end|>", "<|endoftext|>", "</s>", "[INST]", "### Response:", "=>", "<bos>"]
FIELDS = [
    "{utterance}",
    "{context}",
    "{examples}",
    "{0}",
    "{utterance!r:>9}",
    "%s%n",
    "${HOME}",
    "$(reboot)",
    "{{}}",
]
CONTROLS = [*map(chr, range(32)), *map(chr, range(0x7F, 0xA0))]
BIDI = ["\u202e", "\u2066", "\u2069", "\u200f", "مرحبا", "שלום", "\u061c"]
EMOJI = ["😀", "👩‍👩‍👧", "🏳️‍🌈", "🇩🇪", "👍🏽", "\ufe0f", "\u200d"]
RARE = [
    "\ufdd0",
    "\ufdd1",
    "\ufffe",
    "\uffff",
    "\U0010ffff",
    "\ue000",
    "\ufeff",
    "\u2028",
    "\u2029",
    "\u0085",
    "\ufffd",
]
QUOTES = ['"', "'", "\\", "`", "“", "”", "«", "(", ")", "[", "]", "{", "}", '\\"', "\\\\", "\\n"]
SCRIPTS = ["日本語", "Größe", "İstanbul", "ß", "ﬁ", "Ⅷ", "ελληνικά", "кириллица", "हिन्दी", "ไทย", "한국어"]
Kind = Callable[[random.Random], str]


def mixed(pieces: list[str], rng: random.Random, count: int = 12) -> str:
    """Return words of a plain utterance, with pieces inserted among them and within them."""
    words = PLAIN.split()
    for _ in range(count):
        words.insert(rng.randrange(len(words) + 1), rng.choice(pieces))
    return rng.choice(["", " "]).join(words)


def repeated(text: str, size: int) -> str:
    """Return a text repeated to a size."""
    return (text * (size // len(text) + 1))[:size]


KINDS: dict[str, Kind] = {
    "plain": lambda rng: " ".join(rng.sample(PLAIN.split(), 8)),
    "control characters": lambda rng: mixed(CONTROLS, rng),
    "NUL": lambda rng: mixed(["\0"], rng),
    "chat markup": lambda rng: mixed(CHAT, rng),
    "fields of templates": lambda rng: mixed(FIELDS, rng),
    "right to left": lambda rng: mixed(BIDI, rng),
    "emoji": lambda rng: mixed(EMOJI, rng),
    "noncharacters": lambda rng: mixed(RARE, rng),
    "quotes and brackets": lambda rng: mixed(QUOTES, rng, 30),
    "scripts": lambda rng: mixed(SCRIPTS, rng),
    "combining marks": lambda rng: "".join(
        c + "".join(rng.choices("\u0301\u0323\u0336\u20dd", k=3)) for c in PLAIN
    ),
    "any code points": lambda rng: "".join(
        chr(code) for _ in range(50) if not 0xD800 <= (code := rng.randrange(0x110000)) < 0xE000
    ),
    "surrogates": lambda rng: mixed(["\ud800", "\udfff"], rng),
    "white space": lambda rng: rng.choice(["", " ", "\t\t", "\n", "\u3000\u00a0", "\u200b", "\r\n "]),
    "one character": lambda rng: rng.choice(["a", "?", '"', "é", "😀", "\\", "0"]),
    "one long word": lambda rng: repeated(rng.choice(["a", "budget", "ab1_", "é", '"']), rng.randrange(200, 900)),
    "long number": lambda rng: f"add {rng.choice('-+')}{repeated('1234567890', 150)} meetings at 1e{10**6}",
    "many words": lambda rng: repeated(rng.choice(["buy bulbs ", "the ", '" ', "a,b ", PLAIN + " "]), 1_500),
    "100 KB": lambda rng: repeated(rng.choice(["budget review ", "x", "日本 ", '\\" ']), 100_000),
}
"""Makes an utterance of each kind."""

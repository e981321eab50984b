"""The formats of strings that are enforced, as regular expressions, and those of numbers, as ranges.

The expressions follow the standards that JSON Schema names, without leap seconds: whether a day has one is not
regular. `jsonschema` leaves several formats unchecked unless further packages are installed; these expressions are
checked instead, together with its own checks.
"""

import re
from functools import cache

from jsonschema import Draft202012Validator, FormatChecker

YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
FEBRUARY_29 = (
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)-02-29"  # leap years
)
DATE = (
    f"(?:{YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{FEBRUARY_29})"
)
TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
DURATION_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
DURATION = (
    f"P(?:(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:{DURATION_TIME})?"
    f"|{DURATION_TIME}|[0-9]+W)"
)
LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOSTNAME = rf"{LABEL}(?:\.{LABEL})*"
ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
EMAIL = rf"{ATOM}(?:\.{ATOM})*@{HOSTNAME}"
OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"(?:{OCTET}\.){{3}}{OCTET}"
H16 = "[0-9A-Fa-f]{1,4}"
LS32 = f"(?:{H16}:{H16}|{IPV4})"
IPV6 = (
    f"(?:(?:{H16}:){{6}}{LS32}|::(?:{H16}:){{5}}{LS32}|(?:{H16})?::(?:{H16}:){{4}}{LS32}"
    f"|(?:(?:{H16}:){{0,1}}{H16})?::(?:{H16}:){{3}}{LS32}|(?:(?:{H16}:){{0,2}}{H16})?::(?:{H16}:){{2}}{LS32}"
    f"|(?:(?:{H16}:){{0,3}}{H16})?::{H16}:{LS32}|(?:(?:{H16}:){{0,4}}{H16})?::{LS32}"
    f"|(?:(?:{H16}:){{0,5}}{H16})?::{H16}|(?:(?:{H16}:){{0,6}}{H16})?::)"
)
UUID = "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
PERCENT = "%[0-9A-Fa-f]{2}"
REG = r"A-Za-z0-9\-._~!$&'()*+,;="
PCHAR = f"(?:[{REG}:@]|{PERCENT})"
SEGMENTS = f"(?:/{PCHAR}*)*"
AUTHORITY = (
    rf"(?:(?:[{REG}:]|{PERCENT})*@)?(?:\[(?:{IPV6}|v[0-9A-Fa-f]+\.[{REG}:]+)\]|(?:[{REG}]|{PERCENT})*)(?::[0-9]*)?"
)
TAIL = rf"(?:\?(?:{PCHAR}|[/?])*)?(?:#(?:{PCHAR}|[/?])*)?"
URI = rf"[A-Za-z][A-Za-z0-9+\-.]*:(?://{AUTHORITY}{SEGMENTS}|/(?:{PCHAR}+{SEGMENTS})?|{PCHAR}+{SEGMENTS}|){TAIL}"
RELATIVE = f"(?://{AUTHORITY}{SEGMENTS}|/(?:{PCHAR}+{SEGMENTS})?|(?:[{REG}@]|{PERCENT})+{SEGMENTS}|){TAIL}"
POINTER = "(?:/(?:[^~/]|~[01])*)*"

FORMATS = {
    "date": DATE,
    "time": TIME,
    "date-time": f"{DATE}[Tt]{TIME}",
    "duration": DURATION,
    "email": EMAIL,
    "hostname": HOSTNAME,
    "ipv4": IPV4,
    "ipv6": IPV6,
    "json-pointer": POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{POINTER})",
    "uri": URI,
    "uri-reference": f"(?:{URI}|{RELATIVE})",
    "uuid": UUID,
}
"""Expressions that match a whole string of a format."""

MAX_LENGTHS = {"hostname": 253, "email": 254}

RANGES = {f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)
}
"""The ranges of the formats of integers in OpenAPI."""
NOT_ENFORCED = frozenset(("idn-email", "idn-hostname", "iri", "iri-reference", "regex", "uri-template"))
"""Formats that JSON Schema defines and that are not enforced: they are refused."""


def is_annotation(name: str) -> bool:
    """Return whether a format asserts nothing: neither JSON Schema nor OpenAPI defines what it says."""
    return name not in FORMATS and name not in RANGES and name not in NOT_ENFORCED


@cache
def format_checker() -> FormatChecker:
    """Return a checker of all enforced formats: by the expressions, and by `jsonschema` as far as it can."""
    known = Draft202012Validator.FORMAT_CHECKER
    checker = FormatChecker(formats=())
    for name, expression in FORMATS.items():
        compiled = re.compile(expression, re.DOTALL)
        limit = MAX_LENGTHS.get(name)

        def matches(
            value: object,
            name: str = name,
            compiled: re.Pattern[str] = compiled,
            limit: int | None = limit,
        ) -> bool:
            if not isinstance(value, str):
                return True
            short = limit is None or len(value) <= limit
            return short and compiled.fullmatch(value) is not None and known.conforms(value, name)

        checker.checks(name)(matches)
    for name, (low, high) in RANGES.items():

        def in_range(value: object, low: int = low, high: int = high) -> bool:
            return not isinstance(value, int | float) or isinstance(value, bool) or low <= value <= high

        checker.checks(name)(in_range)
    return checker

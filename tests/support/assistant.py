"""Functions of a small assistant: the types of parameters that `fewparse new --from-functions` understands."""

from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

from pydantic import BaseModel, Field

__all__ = ["Counter", "ask", "counter", "get_weather", "note", "plant", "wait"]


class Unit(Enum):
    """A unit of temperature."""

    CELSIUS = "C"
    FAHRENHEIT = "F"


@dataclass
class Place:
    """A place."""

    city: str
    country: str = "FR"


class Style(TypedDict, total=False):
    """How to say it."""

    verbose: bool
    words: Annotated[int, Field(ge=1, le=50)]


class Node(BaseModel):
    """A node of a tree."""

    value: int = Field(ge=0, le=10)
    children: list["Node"] = []


def get_weather(
    place: Place,
    day: date,
    unit: Unit = Unit.CELSIUS,
    tags: Optional[set[str]] = None,  # noqa: UP045 -- must be understood too
    style: Style | None = None,
    kind: Literal["short", "long"] = "short",
) -> dict[str, Any]:
    """Get the weather.

    It is made up.

    Args:
        place: Where it is.
        day (date): When it is,
            on which day.
        tags: What to mention.

    Returns:
        What was asked for.
    """
    return {"place": place, "day": day, "unit": unit, "tags": sorted(tags or ()), "style": style, "kind": kind}


async def wait(seconds: Annotated[float, Field(gt=0, lt=10, description="how long")]) -> float:
    """Wait.

    :param seconds: not shown, because the annotation says it
    """
    return seconds


def plant(tree: Node, where: tuple[int, str]) -> Node:
    """Plant a tree.

    Parameters
    ----------
    tree : Node
        What to plant.
    where
        A number and
        a letter.
    """
    return tree


def note(text: str, **more: int) -> str:
    """Write a note next to this module, which is an effect."""
    path = Path(__file__).with_name("notes.txt")
    path.write_text(text)
    return str(path)


def ask(question, *, loud=False):  # type: ignore[no-untyped-def]
    return question.upper() if loud else question


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int = 1) -> int:
        """Add a number."""
        self.count += number
        return self.count

    @staticmethod
    def hello(name: str) -> str:
        """Say hello."""
        return f"hello {name}"

    def _hidden(self) -> None: ...


counter = Counter()
FUNCTIONS = [get_weather, wait]
BY_NAME = {"weather": get_weather, "hold on": wait}
LAMBDAS = [lambda x: x]
TWICE = [wait, wait]
NUMBER = 3


class NeedsArguments:
    """Cannot be made without arguments."""

    def __init__(self, number: int) -> None: ...


def several(*numbers: int) -> int:
    """Take any number of arguments."""
    return sum(numbers)


def positional(number: int, /) -> int:
    """Take an argument without a name."""
    return number


class Custom:
    """A type that JSON cannot express."""


def custom(thing: Custom) -> None:
    """Take a thing."""


def callback(function: "NotDefined") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Have a type that does not exist."""

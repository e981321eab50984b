"""Take the pictures of the playground in the README and the guide: a still one and an animated one.

The model waits before every query until a screenshot was taken, so that no step of the search is missed.
Run: PYTHONPATH=tests python benchmarks/playground_pictures.py
"""

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from PIL import Image

from fewparse import open_model
from fewparse.lm.adapter import Adapter
from support.browser import chromium, visit
from support.serving import GatedModel, running

DOCS = Path(__file__).parents[1] / "docs"
UTTERANCE = "find a time tomorrow when Elena and I are both free"
CHOICE = "when are Elena and I free tomorrow"
SIZE = {"width": 1000, "height": 1060}
COLORS = 256
TYPING, STEP, READING, END = 90, 900, 2_600, 4_000
"""How long frames are shown, in milliseconds."""


class SteppedModel(GatedModel):
    """A model that waits before every query until it may do one more step."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._original = model
        self.steps = threading.Semaphore(0)

    def with_adapter(self, adapter: Adapter) -> "SteppedModel":
        """Return the model with an adapter, which waits for the same steps."""
        adapted = SteppedModel(self._original.with_adapter(adapter))
        adapted.waiting, adapted.steps = self.waiting, self.steps
        return adapted

    def _pass(self) -> None:
        self.waiting.release()
        assert self.steps.acquire(timeout=120), "no further step was allowed"


class Film:
    """Screenshots of a page, and how long each is shown."""

    def __init__(self, page: Any, folder: Path) -> None:
        self._page, self._folder = page, folder
        self._frames: list[tuple[Image.Image, int]] = []

    def shoot(self, milliseconds: int) -> None:
        """Add a screenshot."""
        path = self._folder / "frame.png"
        self._page.wait_for_timeout(150)  # until it is drawn
        self._page.screenshot(path=path)
        with Image.open(path) as frame:
            self._frames.append((frame.convert("RGB"), milliseconds))

    def save(self, path: Path) -> None:
        """Write the animated picture; all frames have the colours of the last one, so that nothing flickers."""
        palette = self._frames[-1][0].quantize(COLORS)
        frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame, _ in self._frames]
        durations = [duration for _, duration in self._frames]
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)


def record(page: Any, model: SteppedModel, film: Film) -> None:
    """Type an utterance, watch the search, and choose the right reading."""
    film.shoot(READING // 2)
    field = page.get_by_role("textbox", name="Utterance")
    field.focus()
    for i in range(0, len(UTTERANCE), 4):
        page.keyboard.type(UTTERANCE[i : i + 4])
        film.shoot(TYPING)
    page.keyboard.press("Enter")
    while not page.locator(".program").count():
        if model.waiting.acquire(blocking=False):
            film.shoot(STEP)
            model.steps.release()
        page.wait_for_timeout(20)
    film.shoot(READING)
    page.screenshot(path=DOCS / "playground.png")
    page.get_by_role("button", name=CHOICE, exact=True).hover()
    film.shoot(STEP)
    page.get_by_role("button", name=CHOICE, exact=True).click()
    page.locator(".thanks").wait_for()
    film.shoot(END)


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_DATA_HOME"] = name  # where feedback goes
        model = SteppedModel(open_model())
        with running(model, "calendar") as served, chromium() as browser:
            with visit(browser, served.url, viewport=SIZE, color_scheme="dark") as opened:
                opened.page.locator("#samples button").first.wait_for()
                film = Film(opened.page, Path(name))
                record(opened.page, model, film)
            film.save(DOCS / "playground.gif")
        model.close()


if __name__ == "__main__":
    main()

"""A real browser, Chromium without a window, that opens pages and records what they request and report."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

ABORTED = "net::ERR_ABORTED"
NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Visit:
    """An opened page, all of its requests, and the errors that it reported."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def failed(self, request: Any) -> None:
        """Record a failed request; aborted are also streams of Chromium that were read to their end."""
        if request.failure != ABORTED:
            self.errors.append(f"{request.failure}: {request.url}")

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the elements that match a CSS selector."""
        return list(self.page.locator(selector).all_inner_texts())


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a running browser; skip the test if Chromium or playwright is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("chromium is not installed")
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox does not work for root
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"] if is_root else [])
        yield browser
        browser.close()


@contextmanager
def visit(browser: Any, url: str, **options: Any) -> Iterator[Visit]:
    """Open a page for a context."""
    page = browser.new_page(**options)
    page.set_default_timeout(10_000)
    opened = Visit(page)
    page.on("request", lambda request: opened.requests.append(request.url))
    page.on("requestfailed", opened.failed)
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.on("console", lambda message: opened.errors.append(message.text))
    page.on("dialog", lambda dialog: opened.errors.append(f"dialog: {dialog.message}"))
    page.goto(url)
    yield opened
    page.close()

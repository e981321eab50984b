"""The files of the page for the browser, read once and served from memory."""

import hashlib
import mimetypes
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC = files("fewparse.serve") / "static"
INDEX = "index.html"


def page_routes() -> list[Route]:
    """Return a route for every file of the page; the page itself is at /."""
    return [route(file.name, file.read_bytes()) for file in STATIC.iterdir() if file.is_file()]


def route(name: str, content: bytes) -> Route:
    """Return the route of a file, which a browser asks for again only if it changes."""
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def respond(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)

    return Route("/" if name == INDEX else f"/{name}", respond, methods=["GET"], name=f"page-{name}")

"""Make the HTTP request of a call of an OpenAPI operation. Nothing is ever sent."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fewparse.domains.calls.declarations import read_declarations
from fewparse.domains.calls.program import Call, read_program, written_value

DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|", "label": ".", "matrix": ","}


class HttpRequests:
    """Returns the request of a program as a JSON value, given the declarations of the functions."""

    def __init__(self, functions: Path) -> None:
        self._functions = read_declarations(functions).by_name

    def __call__(self, program: str) -> Any:
        """Return the request of a call, or a list of them for a list of calls."""
        calls, several = read_program(program)
        requests = [self.request(call) for call in calls]
        return requests if several else requests[0]

    def request(self, call: Call) -> dict[str, Any]:
        """Return method, URL, query, headers and body of the request of a call."""
        if call.name not in self._functions:
            raise ValueError(f"there is no function {call.name}")
        http = self._functions[call.name].http
        if http is None:
            raise ValueError(f"the declaration of {call.name} has no `http`")
        return RequestWriter(http, call.arguments).write()


class RequestWriter:
    """Writes one request."""

    def __init__(self, http: dict[str, Any], arguments: dict[str, Any]) -> None:
        self._http = http
        self._arguments = arguments
        self._query: list[tuple[str, str]] = []
        self._headers: dict[str, str] = {}
        self._cookies: list[str] = []
        self._body: Any = {} if http.get("body_required") else None

    def write(self) -> dict[str, Any]:
        """Return the request."""
        url = self._http["url"]
        for key, value in self._arguments.items():
            place = self._http["arguments"][key]
            name = place.get("name", key)
            match place["in"]:
                case "path":
                    text = simple(value, place)
                    prefix = {"label": ".", "matrix": f";{name}="}.get(place.get("style", ""), "")
                    url = url.replace(f"{{{name}}}", prefix + quote(text, safe=","))
                case "query":
                    self._query += pairs(name, value, place)
                case "header":
                    self._headers[name] = simple(value, place)
                case "cookie":
                    self._cookies += [f"{key}={text}" for key, text in pairs(name, value, place)]
                case _:
                    self._add_to_body(name, value, place)
        if self._body is not None:
            kind = "application/x-www-form-urlencoded" if self._http.get("form") else "application/json"
            self._headers["Content-Type"] = kind
        if self._cookies:
            self._headers["Cookie"] = "; ".join(self._cookies)
        if self._http.get("form") and isinstance(self._body, dict):
            self._body = urlencode([pair for key, value in self._body.items() for pair in pairs(key, value, {})])
        full = f"{url}?{urlencode(self._query)}" if self._query else url
        request = {"method": self._http["method"], "url": full, "query": [list(pair) for pair in self._query]}
        return {**request, "headers": self._headers, "body": self._body}

    def _add_to_body(self, name: str, value: Any, place: dict[str, Any]) -> None:
        self._body = value if place.get("style") == "whole" else {**(self._body or {}), name: value}


def pairs(name: str, value: Any, place: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the names and values with which a value is written in a query or a cookie."""
    style = place.get("style", "form")
    if isinstance(value, dict) and style == "deepObject":
        return [(f"{name}[{key}]", text_of(each)) for key, each in value.items()]
    if place.get("explode", style == "form") and isinstance(value, dict):
        return [(key, text_of(each)) for key, each in value.items()]
    if place.get("explode", style == "form") and isinstance(value, list):
        return [(name, text_of(each)) for each in value]
    return [(name, simple(value, place))]


def simple(value: Any, place: dict[str, Any]) -> str:
    """Return a value as one text; parts of arrays and objects are separated by commas or as the style says."""
    style = place.get("style", "")
    if style == "json":
        return written_value(value, compact=True)
    delimiter = DELIMITERS.get(style, ",")
    if isinstance(value, list):
        return delimiter.join(map(text_of, value))
    if isinstance(value, dict):
        if place.get("explode"):
            return delimiter.join(f"{key}={text_of(each)}" for key, each in value.items())
        return delimiter.join(text for key, each in value.items() for text in (key, text_of(each)))
    return text_of(value)


def text_of(value: Any) -> str:
    """Return a value as it is written in a URL: a text unchanged, everything else as JSON."""
    return value if isinstance(value, str) else written_value(value, compact=True)

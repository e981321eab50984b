"""Secrets in the text of servers: masked in messages in any usual form, and never used, cached or recorded."""

import base64
import json
import string
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote as percent_encoded
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import FewparseError, ServerUnsupported
from fewparse.lm.http.client import HttpClient
from fewparse.lm.http.redaction import PART, Secrets
from fewparse.lm.model import Sampling
from fewparse.lm.response_cache import ResponseCache
from fewparse.lm.usage import Usage
from fewparse.retry import RetryPolicy
from support.prompts import plain_prompt
from support.remote_models import CannedResponse, ScriptedServer, capabilities_of, http_client, model_at
from support.server_behaviours import COMPLIANT
from support.toy_responses import CompletionRequest
from support.toy_server import ToyServer

KEY = "sk-proj-Zq7Lm2Xw9Kd4Rt6Yb1Vn8Hc3"
PASSWORD = "pW-5tK8uQ2xN7jF4-bV6mS3"
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "URL-encoded": percent_encoded,
    "all URL-encoded": lambda key: "".join(f"%{ord(char):02X}" for char in key),
    "escapes of JSON": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "entities of HTML": lambda key: "".join(f"&#x{ord(char):02x};" for char in key),
    "base 64": lambda key: base64.b64encode(key.encode()).decode(),
    "URL-safe base 64": lambda key: base64.urlsafe_b64encode(f"a:{key}".encode()).decode(),
    "base 64 of the header": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
    "two parts": lambda key: f"{key[:16]} and then {key[16:]}",
    "other separators": lambda key: key.replace("-", "_"),
    "a space after each character": " ".join,
    "lines": lambda key: "\n".join(key[i : i + 5] for i in range(0, len(key), 5)),
    "only a part": lambda key: key[8:24],
    "the last half": lambda key: key[len(key) // 2 :],
    "quoted": lambda key: f"'{key}'",
}


def encodings(key: str) -> list[str]:
    """The key, and its usual encodings."""
    return [key, key.encode().hex(), *(base64.b64encode(b"x" * i + key.encode()).decode()[4:-4] for i in range(3))]


def revealed(text: str) -> list[str]:
    """The parts of the secrets that can be read in a text, in any case and with any separators."""
    for escape in ("%", "\\u00", "&#x"):
        for char in string.printable:
            text = text.replace(f"{escape}{ord(char):02x}", char).replace(f"{escape}{ord(char):02X}", char)
    seen = "".join(filter(str.isalnum, text)).lower()
    parts = []
    for secret in (KEY, PASSWORD):
        for form in encodings(secret):
            letters = "".join(filter(str.isalnum, form)).lower()
            length = PART if form == secret else 2 * PART
            parts += [letters[i : i + length] for i in range(len(letters) - length + 1)]
    return [part for part in parts if part in seen]


def secrets_of(key: str) -> Secrets:
    return Secrets(key, urlsplit("http://127.0.0.1/v1"))


def with_password(url: str) -> str:
    return url.replace("http://", f"http://someone:{PASSWORD}@")


def test_the_oracle_finds_each_form() -> None:
    assert all(revealed(form(secret)) for form in FORMS.values() for secret in (KEY, PASSWORD))
    assert not revealed("http://127.0.0.1/v1: the server rejected *** and Zq7Lm2X")


@pytest.mark.parametrize("secret", [KEY, PASSWORD], ids=["key", "password"])
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("status", [302, 400, 401, 404, 429, 500])
def test_no_form_of_a_secret_is_shown(status: int, name: str, secret: str) -> None:
    message = f"not allowed: {FORMS[name](secret)} is wrong"
    responses = [
        CannedResponse(status, {"error": {"message": message}}),
        CannedResponse(status, message.encode()),
        CannedResponse(status, b"", [("Location", "/" + " ".join(message.split()))]),
    ]
    retry = RetryPolicy(5, 5, max_attempts=1)
    with ScriptedServer(*responses) as server, http_client(with_password(server.url), KEY, retry) as client:
        for _ in responses:
            with pytest.raises(FewparseError) as caught:
                post(client)
            assert not revealed(f"{caught.value} {caught.value!r}")


def post(client: HttpClient) -> Any:
    return client.post("/v1/completions", {"model": "toy"}, lambda payload: payload).content


@pytest.mark.parametrize("secret", [KEY, PASSWORD], ids=["key", "password"])
@pytest.mark.parametrize("name", FORMS)
def test_a_response_that_holds_a_secret_is_neither_used_nor_cached(name: str, secret: str, tmp_path: Path) -> None:
    text = FORMS[name](secret)
    for payload in ({"choices": [{"text": text}]}, {"id": text, "choices": []}, {"choices": [], text: 7}):
        with (
            ScriptedServer(CannedResponse(200, payload)) as server,
            closing(ResponseCache(tmp_path / "responses.sqlite")) as cache,
            http_client(with_password(server.url), KEY, cache=cache) as client,
        ):
            with pytest.raises(ServerUnsupported, match="returned the API key or the password") as caught:
                post(client)
            assert not revealed(str(caught.value))
            assert cache.statistics().entries == 0
            assert len(server.requests) == 1


def test_escapes_within_json_hide_no_secret() -> None:
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    body = f'{{"choices": [], "id": "{escaped}"}}'.encode()
    assert json.loads(body)["id"] == KEY
    with (
        ScriptedServer(CannedResponse(200, body)) as server,
        http_client(server.url, KEY) as client,
        pytest.raises(ServerUnsupported, match="API key"),
    ):
        post(client)


class SpellingServer(ToyServer):
    """Spells the key in the tokens of its completions, with an empty text."""

    def _response(self, request: CompletionRequest, chat: bool) -> dict[str, Any]:
        response = super()._response(request, chat)
        for choice in response["choices"]:
            tokens = list(KEY)
            top = [{token: -0.1} for token in tokens]
            choice["text"] = ""
            choice["logprobs"] = {"tokens": tokens, "token_logprobs": [-0.1] * len(tokens), "top_logprobs": top}
        return response


def test_tokens_that_spell_a_secret_are_not_used() -> None:
    with (
        SpellingServer() as server,
        model_at(server.url, capabilities_of(COMPLIANT), key=KEY) as model,
        pytest.raises(ServerUnsupported, match="API key"),
    ):
        model.sample(plain_prompt("pear"), [()], Sampling(2, 1.0, 50), Usage())


@pytest.mark.parametrize(
    "key", ["ollama", "EMPTY", "x", "none", "lm-studio", "sk-no-key-required", "token-abc123"]
)
def test_a_placeholder_as_key_refuses_no_ordinary_response(key: str) -> None:
    payload = {"system_fingerprint": "fp_ollama", "choices": [{"text": "an empty key is required, none is x"}]}
    with ScriptedServer(CannedResponse(200, payload)) as server, http_client(server.url, key) as client:
        assert post(client) == payload


def test_a_version_in_the_query_is_not_a_secret_of_responses(tmp_path: Path) -> None:
    payload = {"model": "pear-2024-08-06", "api_version": "2024-08-06"}
    with (
        ScriptedServer(CannedResponse(200, payload)) as server,
        closing(ResponseCache(tmp_path / "responses.sqlite")) as cache,
        http_client(f"{server.url}?api-version=2024-08-06", cache=cache) as client,
    ):
        assert post(client) == payload
        assert cache.statistics().entries == 1


@given(st.text(max_size=80), st.text(max_size=80))
def test_text_without_a_secret_is_unchanged(before: str, after: str) -> None:
    secrets = secrets_of(KEY)
    assert secrets.mask(before) == before
    masked = secrets.mask(f"{before} {KEY} {after}")
    assert masked == f"{before} *** {after}"
    assert not secrets.refuse(before.encode(errors="surrogatepass"))

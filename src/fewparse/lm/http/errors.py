"""Convert error responses and network failures to fewparse errors with a hint."""

import re
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from fewparse.errors import ContextOverflow, FewparseError, ModelError, ServerRejected, ServerUnavailable
from fewparse.lm.http.schema import LengthError
from fewparse.text import printable

MAX_QUOTE_LENGTH = 300
MAX_MESSAGE_LENGTH, MAX_MESSAGE_PARTS, MAX_MESSAGE_DEPTH = 10_000, 5, 4
MESSAGE_FIELDS = ("message", "msg", "detail", "error")
PROBE_HINT = "`fewparse models probe` tests again what the server supports."
QUOTA_PHRASES = ("insufficient_quota", "billing", "credit balance")
CONTEXT_PHRASES = ("context", "too long", "maximum input length", "prompt is longer")
NUMBER = re.compile(r"\d{2,}")
CONTEXT_LIMIT = re.compile(
    r"(?:context (?:length|size|window)|at most|maximum|limit)[^\d.;]{0,20}(\d{2,})", re.IGNORECASE
)


class ErrorResponse(NamedTuple):
    """An error response: a short reason, the error to raise, and whether it is final regardless of the status."""

    reason: str
    error: FewparseError
    final: bool


def read_error_response(
    status: int, payload: Any, url: str, body: Mapping[str, Any], message: str
) -> ErrorResponse:
    """Interpret a status other than 200; `message` is the server's own text, without secrets."""
    error_fields = error_object(payload)
    code = message_text(error_fields.get("code")) or message_text(error_fields.get("type"))
    description = f"{code} {message}".lower()
    no_quota = status == 402 or (status == 429 and any(phrase in description for phrase in QUOTA_PHRASES))
    reason = f"status {status}{f': {message}' if message else ''}"
    error: ModelError = ServerRejected(f"{url} rejected the request ({reason})", hint_for(message))
    if status in (401, 403):
        error = ServerRejected(
            f"{url} rejected the API key, or requires one ({reason})",
            "Set OPENAI_API_KEY to the right key (or FEWPARSE_API_KEY, which takes precedence).",
        )
    elif status == 404:
        error = ServerRejected(
            f"{url} has no such model or endpoint ({reason})",
            f"The requested model is {body.get('model')!r}. `fewparse models probe` lists the available ones; "
            "a chat-only model is openai-chat:NAME; the base URL (--base-url) usually ends in /v1.",
        )
    elif status in (301, 302, 303, 307, 308):
        error = ServerRejected(f"{url} redirects elsewhere ({reason})", "Pass the final address as --base-url.")
    elif no_quota:
        error = ServerRejected(
            f"{url}: the account has no credit left ({reason})",
            "Check the account's plan and billing; the responses received so far are cached.",
        )
    elif status in (400, 413, 422) and any(phrase in message.lower() for phrase in CONTEXT_PHRASES):
        error = context_overflow(payload, message) or error
    return ErrorResponse(reason, error, no_quota)


def context_overflow(payload: Any, message: str) -> ContextOverflow | None:
    """Return the error for a prompt beyond the context length; None if the message lacks one of the lengths."""
    try:
        lengths = LengthError.model_validate(error_object(payload))
        return ContextOverflow(lengths.n_prompt_tokens, lengths.n_ctx)
    except ValidationError:
        pass
    numbers = {int(number) for number in NUMBER.findall(message)}
    if len(numbers) < 2:
        return None
    limit = CONTEXT_LIMIT.search(message)
    return ContextOverflow(max(numbers), int(limit[1]) if limit else min(numbers))


def hint_for(message: str) -> str:
    """Return the hint for a rejected request that only the server's message explains."""
    if "chat" in message.lower():
        return "This model seems to support chat only: use openai-chat:NAME."
    return PROBE_HINT


def permanent_network_error(error: Exception, url: str, redact: Callable[[str], str]) -> ServerUnavailable | None:
    """Return the error for a failure that a retry cannot fix (TLS, unknown host); None for others."""
    cause: BaseException | None = error
    while cause is not None:
        text = redact(str(cause))
        if isinstance(cause, ssl.SSLError) or "SSL" in text or "certificate" in text.lower():
            return ServerUnavailable(
                f"{url}: no secure connection ({text})",
                "Does the server use https://? For a private certificate, set SSL_CERT_FILE to the file to trust.",
            )
        if isinstance(cause, socket.gaierror):
            return ServerUnavailable(f"{url}: unknown host ({text})", "Check the address (--base-url).")
        cause = cause.__cause__ or cause.__context__
    return None


def error_object(payload: Any) -> dict[str, Any]:
    """Return the error object of a response, in whichever field the server puts it."""
    if not isinstance(payload, dict):
        return {}
    error = payload.get("error", payload)
    return error if isinstance(error, dict) else {"message": error}


def error_message(payload: Any) -> str:
    """Return the error message of a response, or an empty string."""
    return message_text(error_object(payload))


def message_text(value: Any, depth: int = MAX_MESSAGE_DEPTH) -> str:
    """Return the message in a value of JSON: a text, a number, an object with a message, or a list of these."""
    if isinstance(value, str):
        return value[:MAX_MESSAGE_LENGTH]
    if isinstance(value, dict) and depth:
        return message_text(next((value[name] for name in MESSAGE_FIELDS if value.get(name)), None), depth - 1)
    if isinstance(value, list) and depth:
        return "; ".join(filter(None, (message_text(part, depth - 1) for part in value[:MAX_MESSAGE_PARTS])))
    return str(value) if type(value) in (int, float) else ""


def quote(text: str) -> str:
    """Return a text on one line as it is safe to show, cut to `MAX_QUOTE_LENGTH`."""
    flat = printable(" ".join(text[:MAX_MESSAGE_LENGTH].split()))
    return flat if len(flat) <= MAX_QUOTE_LENGTH else flat[:MAX_QUOTE_LENGTH] + "…"

"""Prompts of plain text."""

from fewparse.prompt import Part, Prompt


def plain_prompt(text: str) -> Prompt:
    """Return a prompt without markup and messages."""
    return Prompt((Part(text, False),))

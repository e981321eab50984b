"""A few items of function calls, in the form of JSON lines and in the published form of BFCL."""

from typing import Any


def weather(description: str) -> dict[str, Any]:
    """Return the declaration of a function, in BFCL's dialect."""
    properties = {
        "city": {"type": "string", "description": "Its name"},
        "days": {"type": "integer", "description": "How many days"},
        "place": {"type": "dict", "properties": {"country": {"type": "string"}, "zip": {"type": "string"}}},
    }
    parameters = {"type": "dict", "properties": properties, "required": ["city"]}
    return {"name": "weather.get", "description": description, "parameters": parameters}


def item_rows(count: int, descriptions: tuple[str, ...] = ("Weather of a city.",)) -> list[dict[str, Any]]:
    """Return items; each one has the next of the descriptions, in turn, for its function."""
    return [
        {
            "id": f"item_{i}",
            "utterance": f"weather in Paris for {i} days",
            "functions": [weather(descriptions[i % len(descriptions)])],
            "accepted": [
                {
                    "weather.get": {
                        "city": ["Paris, France", "Paris"],
                        "days": [i],
                        "place": ["", {"country": ["France", "FR"], "zip": ["", "75000"]}],
                    }
                }
            ],
        }
        for i in range(count)
    ]


def published_rows(count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the lines of both published files."""
    rows = item_rows(count)
    questions = [
        {
            "id": row["id"],
            "question": [[{"role": "user", "content": row["utterance"]}]],
            "function": row["functions"],
        }
        for row in rows
    ]
    return questions, [{"id": row["id"], "ground_truth": row["accepted"]} for row in rows]

"""A few questions about the shop in the published form of GeoQuery."""

from typing import Any


def published_queries() -> list[dict[str, Any]]:
    """Return queries with variables, several questions and several forms of SQL."""
    city = {"name": "city0", "example": "Bern", "location": "both", "type": "city"}
    fixed = {"name": "limit0", "example": "3", "location": "sql-only", "type": "number"}

    def question(split: str, text: str, **variables: str) -> dict[str, Any]:
        return {"question-split": split, "text": text, "variables": variables}

    return [
        {
            "query-split": "train",
            "sentences": [
                question("dev", "who lives in city0", city0="Oslo"),
                question("train", "who lives in city0", city0="Bern"),
                question("test", "which customers are from city0", city0="Oslo"),
            ],
            "sql": [
                'SELECT CUSTOMERalias0.NAME FROM CUSTOMER AS CUSTOMERalias0 WHERE CUSTOMERalias0.CITY = "city0" ;',
                'SELECT NAME FROM CUSTOMER WHERE CITY = "city0" ;',
            ],
            "variables": [city],
        },
        {
            "query-split": "test",
            "sentences": [question("train", "who was among the first", limit0="")],
            "sql": [
                "SELECT CUSTOMERalias0.NAME FROM CUSTOMER AS CUSTOMERalias0 WHERE CUSTOMERalias0.ID < limit0 ;"
            ],
            "variables": [fixed],
        },
    ]

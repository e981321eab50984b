"""The normal form of a query has the rows of the query, or the query is refused with the place of the reason."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from fewparse.domains.sql.english import Phrases
from fewparse.domains.sql.grammar import sql_grammar
from fewparse.domains.sql.normal_form import canonical_sql
from fewparse.domains.sql.templates import Binding, Instances, Template, templates
from fewparse.errors import SqlError
from fewparse.grammar.parsing.chart import ChartParser
from fewparse.grammar.synchronous import PairedRule
from support.campaign import sizes
from support.sql_queries import SHOP, RandomQuery, random_rows


@cache
def programs() -> ChartParser:
    return ChartParser(sql_grammar(SHOP, Phrases(SHOP)).side("program"))


def as_multiset(rows: Iterable[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(round(float(v), 9) if isinstance(v, int | float) else v for v in row) for row in rows)


@sizes("count", 240, 20_000)
def test_random_queries_keep_their_rows(count: int) -> None:
    expressible = 0
    for seed in range(count):
        databases = [random_rows(seed // 50 + number) for number in range(3)]
        sql = RandomQuery(seed).sql
        expected = [as_multiset(database.execute(sql)) for database in databases]
        try:
            normal = canonical_sql(sql, SHOP)
        except SqlError:
            continue
        expressible += 1
        assert [as_multiset(database.execute(normal)) for database in databases] == expected, (sql, normal)
        assert canonical_sql(normal, SHOP) == normal
        if seed % 10 == 0:
            assert programs().accepts(normal), normal
    assert expressible > 0.75 * count


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM customer WHERE name NOT LIKE 'A%'",
        "SELECT id FROM customer WHERE NOT (name NOT LIKE 'A%')",
        "SELECT c.id FROM customer c LEFT JOIN orders o ON c.id = o.customer_id WHERE c.id = o.customer_id",
        "SELECT * FROM item i RIGHT JOIN orders o ON i.order_id = o.id",
        "SELECT id FROM customer WHERE id NOT IN (SELECT customer_id FROM orders)",
        "SELECT c.name, COUNT(*) FROM customer c JOIN orders o ON c.id = o.customer_id GROUP BY o.customer_id",
        "WITH q AS (SELECT * FROM orders WHERE total > 1) SELECT status FROM q WHERE day IS NOT NULL",
        "SELECT c.city, SUM(i.quantity * p.price) FROM customer c JOIN orders o ON o.customer_id = c.id "
        "JOIN item i ON i.order_id = o.id JOIN product p ON p.id = i.product_id GROUP BY c.city",
        "SELECT age / 2, age / 0.5 FROM customer",
        "SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM product p WHERE p.name = c.name AND stock > 1)",
        "SELECT name, (SELECT COUNT(*) FROM product WHERE product.name = customer.name) FROM customer",
        "SELECT name FROM customer WHERE 1 = 1 AND age > 1",
    ],
)
def test_usual_queries_keep_their_rows(sql: str) -> None:
    normal = canonical_sql(sql, SHOP)
    for seed in range(5):
        database = random_rows(seed)
        assert as_multiset(database.execute(normal)) == as_multiset(database.execute(sql)), normal
    assert programs().accepts(normal)


@pytest.mark.parametrize(
    ("sql", "at", "reason"),
    [
        ("SELECT CASE WHEN age > 1 THEN 1 END FROM customer", "CASE", "CASE is not supported"),
        ("SELECT strftime('%Y', day) FROM orders", "strftime", "STRFTIME is not supported"),
        ("SELECT name || 'x' FROM customer", "name ||", "|| is not supported"),
        ("SELECT name FROM customer WHERE name IS NOT 'Bo'", "name IS", "IS NOT with a value is not supported"),
        ("SELECT CAST(price AS INTEGER) FROM product", "CAST", "CAST is not supported"),
        ("SELECT name FROM customer TABLESAMPLE BERNOULLI (5)", "customer", "SAMPLE is not supported"),
        ("SELECT COUNT(*) FILTER (WHERE vip) FROM customer", "COUNT", "FILTER is not supported"),
        ("SELECT name FROM customer WHERE name LIKE '5!%' ESCAPE '!'", "name LIKE", "ESCAPE is not supported"),
        ("SELECT MAX(age) FROM customer LIMIT 1 OFFSET 1", "customer", "OFFSET after aggregates"),
        ("SELECT name FROM customer WHERE age > ALL (SELECT id FROM orders)", "age >", "`> ALL`"),
        ("SELECT name FROM customer WHERE city = 'Paris'", "city =", "'Paris' is not a value"),
        ("SELECT name FROM customer WHERE 1 = 2", "1 = 2", "a condition without a column"),
        ("SELECT name FROM customer WHERE age IN ()", "age IN", "IN takes at least one value"),
        (
            "SELECT c.id FROM customer c LEFT JOIN orders o ON c.id = o.customer_id AND o.total > 1",
            "o.total",
            "the condition of LEFT JOIN",
        ),
        ("SELECT name, COUNT(*) FROM customer GROUP BY city", "name", "neither in GROUP BY nor in an aggregate"),
        ("SELECT * FROM orders JOIN item USING (id)", "item", "USING"),
    ],
)
def test_what_is_not_expressed_is_refused_by_name_and_place(sql: str, at: str, reason: str) -> None:
    with pytest.raises(SqlError, match=re.escape(reason)) as caught:
        canonical_sql(sql, SHOP)
    start = sql.index(at)
    assert caught.value.column is not None
    assert start < caught.value.column <= start + len(at) + 8


def test_every_template_has_an_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    instantiated = set[Template]()
    make = Instances.of

    def recorded(instances: Instances, template: Template, bindings: Iterable[Binding]) -> Iterator[PairedRule]:
        for rule in make(instances, template, bindings):
            instantiated.add(template)
            yield rule

    monkeypatch.setattr(Instances, "of", recorded)
    sql_grammar(SHOP, Phrases(SHOP))
    assert instantiated == set(templates())

"""Find references that lead back to themselves, so that they describe no value."""

from collections.abc import Iterator

from fewparse.json_schema.document import Document, Subschema

LISTS = ("allOf", "anyOf", "oneOf")
SINGLE = ("not", "if", "then", "else")
NAMED = ("dependentSchemas", "dependencies")
BELOW = ("items", "additionalItems", "contains", "additionalProperties", "propertyNames")
NAMED_BELOW = ("properties", "patternProperties")


def check_loops(document: Document) -> None:
    """Raise `SchemaError` for a reference that leads back to itself without an array or object in between."""
    agenda, finished = [document.root], set[int]()
    while agenda:
        part = agenda.pop()
        if isinstance(part.schema, dict) and id(part.schema) not in finished:
            _check(part, set(), finished, agenda)


def _check(part: Subschema, path: set[int], finished: set[int], agenda: list[Subschema]) -> None:
    if isinstance(part.schema, bool) or id(part.schema) in finished:
        return
    path.add(id(part.schema))
    for following in in_place(part):
        if id(following.schema) in path:
            message = "the references lead in a circle, so that no value is described"
            raise part.fail(["$ref"] if "$ref" in part.schema else [], message)
        _check(following, path, finished, agenda)
    path.discard(id(part.schema))
    finished.add(id(part.schema))
    agenda += below(part)


def in_place(part: Subschema) -> Iterator[Subschema]:
    """Yield the parts that a part applies to the same value."""
    assert isinstance(part.schema, dict)
    if "$ref" in part.schema:
        yield part.referenced()
        if part.ref_only:
            return
    for keyword in LISTS:
        yield from part.children(keyword)
    for keyword in SINGLE:
        if keyword in part.schema:
            yield part.child(keyword)
    for keyword in NAMED:
        for name, needed in part.schema.get(keyword, {}).items():
            if isinstance(needed, dict):
                yield part.child(keyword, name)


def below(part: Subschema) -> Iterator[Subschema]:
    """Yield the parts that a part applies to items and properties."""
    assert isinstance(part.schema, dict)
    if "$ref" in part.schema and part.ref_only:
        return
    yield from part.children("prefixItems")
    for keyword in BELOW:
        if isinstance(part.schema.get(keyword), list):
            yield from part.children(keyword)
        elif isinstance(part.schema.get(keyword), dict):
            yield part.child(keyword)
    for keyword in NAMED_BELOW:
        yield from part.named(keyword).values()

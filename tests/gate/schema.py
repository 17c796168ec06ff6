"""The part of JSON Schema that docs/reference/schemas uses: enough to hold what perfkit writes against it where
no validator is installed."""
import json

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, root=None, where="$"):
    """What does not fit, as sentences."""
    root = root or schema
    if "$ref" in schema:
        part = root
        for name in schema["$ref"].lstrip("#/").split("/"):
            part = part[name]
        yield from problems(value, part, root, where)
        return
    known = {"$schema", "$defs", "title", "description", "type", "enum", "const", "required",
             "properties", "additionalProperties", "items"}
    assert set(schema) <= known, set(schema) - known
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r is not one of %s" % (where, value, schema["enum"])
    if "const" in schema and value != schema["const"]:
        yield "%s: %r is not %r" % (where, value, schema["const"])
    types = schema.get("type")
    if types and not any(is_type(value, t) for t in ([types] if isinstance(types, str) else types)):
        yield "%s: %r is not %s" % (where, value, types)
        return
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield "%s: no %s" % (where, name)
        for name, member in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            if inner is False:
                yield "%s: %s is not known" % (where, name)
            elif isinstance(inner, dict):
                yield from problems(member, inner, root, where + "." + name)
    if isinstance(value, list) and "items" in schema:
        for i, member in enumerate(value):
            yield from problems(member, schema["items"], root, "%s[%d]" % (where, i))


def read(path):
    with open(path) as file:
        return json.load(file)

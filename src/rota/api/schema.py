"""Generates the OpenAPI document from the operations and their types."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from rota import __version__
from rota.api.operations import EVENTS, Nothing, Operation
from rota.api.paths import PREFIX
from rota.api.problems import ErrorBody
from rota.api.schema_names import SCHEMA_NAMES
from rota.errors import Bug

_REF: Final = "#/components/schemas/{name}"
_ERRORS: Final = {
    "400": "A value is missing or wrong",
    "401": "No credential, or one that is not valid",
    "403": "The credential does not allow this",
    "404": "There is no such thing",
    "405": "Not with this method",
    "409": "It was changed meanwhile",
    "413": "The body is too large",
    "421": "The host is not one of ours",
    "429": "Too many requests or streams",
    "431": "The headers are too large",
    "500": "A bug: see the logs",
    "503": "The manager cannot be reached",
    "504": "It took too long",
    "507": "The disk is nearly full",
}
_ABOUT: Final = (
    "Everything that the command line does, over HTTP. Times are ISO-8601 UTC, durations seconds, sizes bytes. "
    "Scripts send a token (`rota manager token add`); the dashboard has a session cookie and sends the header "
    "`X-Rota-CSRF` with every change."
)


def document(operations: list[Operation]) -> bytes:
    """The document as JSON."""
    types: list[Any] = [ErrorBody]
    for operation in operations:
        types += [kind for kind in (operation.body, operation.answer) if kind is not None]
        types += [operation.place, operation.query]
    schemas, components = _described(types)
    of = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    failure = {"content": {"application/json": {"schema": of[id(ErrorBody)]}}}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _entry(operation, of, components)
    used = _used([paths, failure, {"$ref": _REF.format(name=SCHEMA_NAMES[ErrorBody])}], components)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Rota", "version": __version__, "description": _ABOUT},
            "paths": paths,
            "components": {
                "schemas": {name: schema for name, schema in sorted(components.items()) if name in used},
                "responses": {f"E{code}": {"description": text, **failure} for code, text in _ERRORS.items()},
                "securitySchemes": {
                    "token": {"type": "http", "scheme": "bearer"},
                    "session": {"type": "apiKey", "in": "cookie", "name": "__Host-rota-PORT"},
                },
            },
        }
    )


def _described(types: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The schemas of these types, and the components that they refer to, by the names of `SCHEMA_NAMES`."""
    made, components = msgspec.json.schema_components([*types, *SCHEMA_NAMES], ref_template=_REF)
    # msgspec calls a component after its class, or after its module, too, where two classes share a name.
    names = {name: name for name in components}
    names |= {_leaf(schema): name for schema, name in zip(made[len(types) :], SCHEMA_NAMES.values(), strict=True)}
    found = {names[old]: _renamed(schema, names) | {"title": names[old]} for old, schema in components.items()}
    if len(found) < len(components):
        raise Bug("two types have the same name in the OpenAPI document")
    return [_renamed(schema, names) for schema in made[: len(types)]], found


def _leaf(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _renamed(schema: Any, names: dict[str, str]) -> Any:
    match schema:
        case {"$ref": str()}:
            return schema | {"$ref": _REF.format(name=names[_leaf(schema)])}
        case dict():
            return {key: _renamed(value, names) for key, value in schema.items()}
        case list():
            return [_renamed(value, names) for value in schema]
    return schema


def _entry(operation: Operation, of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "security": [] if operation.role == "open" else [{"token": []}, {"session": []}],
    }
    about = [operation.description, "For administrators." if operation.role == "admin" else ""]
    if text := " ".join(filter(None, about)):
        entry["description"] = text
    parameters = [
        *_parameters(operation.place, "path", of, components),
        *_parameters(operation.query, "query", of, components),
    ]
    if parameters:
        entry["parameters"] = parameters
    if operation.body is not None:
        entry["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": of[id(operation.body)]}},
        }
    entry["responses"] = _responses(operation, of)
    return entry


def _responses(operation: Operation, of: dict[int, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done"}
    if operation.answer is not None:
        content = {operation.kind: {"schema": of[id(operation.answer)]}}
        good = {"description": operation.summary, "content": content}
    elif operation.kind == EVENTS:
        good = {"description": operation.summary, "content": {EVENTS: {"schema": {"type": "string"}}}}
    found = {str(operation.status): good}
    for code in _ERRORS:
        found[code] = {"$ref": f"#/components/responses/E{code}"}
    return found


def _parameters(kind: Any, where: str, of: dict[int, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    if kind is Nothing:
        return []
    whole = components[_leaf(of[id(kind)])]
    required = whole.get("required", [])
    found = []
    for name, schema in whole["properties"].items():
        schema = dict(schema)
        entry: dict[str, Any] = {"name": name, "in": where, "required": where == "path" or name in required}
        if text := schema.pop("description", ""):
            entry["description"] = text
        entry["schema"] = schema
        found.append(entry)
    return found


def _used(roots: list[Any], components: dict[str, Any]) -> set[str]:
    """Names of the schemas that the document refers to, directly or indirectly."""
    found: set[str] = set()
    text = b"".join(map(msgspec.json.encode, roots)).decode()
    waiting = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            text = msgspec.json.encode(components[name]).decode()
            waiting |= set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    return found

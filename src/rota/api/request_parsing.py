"""Parses the query and the body of a request into the types that its operation declares."""

from __future__ import annotations

from typing import Any

import msgspec
import msgspec.inspect
from starlette.requests import Request

from rota.api.operations import Operation, read
from rota.api.problems import TooLarge
from rota.api.rate_limits import BodyBytes
from rota.api.validation_errors import validation_error
from rota.errors import BadInput


def query_of(request: Request, operation: Operation) -> Any:
    """The query parameters; a repeatable one is a list. Raises `BadInput` for an unknown parameter or word, and
    for a single-valued parameter that is given twice."""
    kinds = {each.encode_name: each.type for each in msgspec.structs.fields(operation.query)}
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name not in kinds:
            known = ", ".join(sorted(kinds)) or "none"
            raise BadInput(f"there is no parameter {name[:40]!r}", hint=f"known are: {known}").about(name[:40])
        kind = _bare(msgspec.inspect.type_info(kinds[name]))
        if isinstance(kind, msgspec.inspect.ListType):
            item = _bare(kind.item_type)
            words = _words(name, value, item) if isinstance(item, msgspec.inspect.LiteralType) else [value]
            found.setdefault(name, []).extend(words)
        elif name in found:
            raise BadInput(f"the parameter {name!r} is given twice").about(name)
        else:
            found[name] = value
    return read("the parameter", "the query", found, operation.query)


def _words(name: str, text: str, kind: msgspec.inspect.LiteralType) -> list[str]:
    """Words of a fixed set may also be separated by commas."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if word not in kind.values:
            known = ", ".join(map(str, kind.values))
            text = f"the parameter {name!r}: there is no {word[:40]!r}"
            raise BadInput(text, hint=f"known are: {known}").about(name)
    return words


def _bare(kind: Any) -> Any:
    return _bare(kind.type) if isinstance(kind, msgspec.inspect.Metadata) else kind


async def body_of(operation: Operation, request: Request, headers: dict[str, str], held: BodyBytes) -> Any:
    """The decoded body. Its content type must be JSON: a form on another site cannot send that."""
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise BadInput("a body that is compressed is not taken", hint="leave Content-Encoding out")
    most = operation.body_max if operation.body is not None else 0
    declared = headers.get("content-length", "")
    data = b""
    if not declared.isdigit() or int(declared[:19]) <= most:
        data = await _received(request, most, held)
    elif operation.body is not None:
        raise _too_large(most)
    else:
        raise BadInput("this takes no body", hint="leave it out")
    if operation.body is None:
        return None
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadInput("the body must be JSON", hint="send: Content-Type: application/json")
    try:
        return msgspec.json.decode(data, type=operation.body)
    except msgspec.ValidationError as error:
        raise validation_error("the field", "the body", error, operation.body) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the body is not valid JSON: {error}", hint="correct it") from None


async def _received(request: Request, most: int, held: BodyBytes) -> bytes:
    data = bytearray()
    async for part in request.stream():
        if len(data) + len(part) > most:
            if most:
                raise _too_large(most)
            raise BadInput("this takes no body", hint="leave it out")
        held.more(len(part))
        data += part
    return bytes(data)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the body has more than {most:,} bytes", hint="send it in parts")

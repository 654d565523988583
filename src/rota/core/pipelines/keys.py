"""`{key}`: what an element is, as one SHA-256. It changes exactly when something that makes the element does."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from rota.core.pipelines.definition import Definition

_LENGTH: Final = 8


def stages_digest(definition: Definition) -> bytes:
    """Of the texts of the stages that elements go through, selected or not."""
    texts = [text for stage in definition.stages if not stage.per_session for text in stage.texts]
    return _digest([text.encode() for text in texts])


def element_key(definition: Definition, position: int, *, stages: bytes, file: str, parents: Sequence[str]) -> str:
    """The key of one element in hex.

    `stages`: their digest. `file`: hex SHA-256 of the file that `redefines` names; empty: there is none.
    `parents`: the keys of its dependencies, in any order.
    """
    own = sorted(definition.values(position).items())
    said = [word.encode("utf-8", "surrogatepass") for pair in own for word in pair]
    parts = [stages, _digest(said), file.encode(), _digest([key.encode() for key in sorted(parents)])]
    return _digest(parts).hex()


def element_keys(definition: Definition, files: Sequence[str] = ()) -> list[str]:
    """The keys of all elements; `files`: what they redefine, as above, for each of them."""
    stages = stages_digest(definition)
    keys: list[str] = []
    for position, element in enumerate(definition.elements):
        parents = [keys[parent] for parent in element.depends]
        file = files[position] if files else ""
        keys.append(element_key(definition, position, stages=stages, file=file, parents=parents))
    return keys


def definition_digest(definition: Definition) -> str:
    """Tells whether a file still says the same: equal definitions, and only those, have equal digests."""
    return sha256(msgspec.msgpack.encode(definition, order="sorted")).hexdigest()


def _digest(parts: Sequence[bytes]) -> bytes:
    """Of the parts with their lengths, so that no two lists of parts look alike."""
    found = sha256()
    for part in parts:
        found.update(len(part).to_bytes(_LENGTH, "big"))
        found.update(part)
    return found.digest()

"""Property expressions for tests to draw."""

from __future__ import annotations

from hypothesis import strategies as st

from rota.plan.language.expression_tree import (
    Both,
    Comparison,
    Constant,
    Either,
    Expression,
    Kind,
    Membership,
    Negation,
    Presence,
    Property,
    Range,
)

#: Names whose first letter is the kind of the property.
KINDS: dict[str, Kind] = {
    "t1": "text",
    "t2": "text",
    "n1": "integer",
    "n2": "integer",
    "y1": "yesno",
    "y2": "yesno",
}
SIGNS = ["=", "!=", "<", "<=", ">", ">="]

texts = st.sampled_from(["", "a", "ab", "YES", "no", "7", "it's", '"', "%", "a_b"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=6
)
constants = (
    texts.map(lambda value: Constant("text", value))
    | (st.integers(-3, 9) | st.integers(1 - 10**18, 10**18 - 1)).map(lambda value: Constant("integer", value))
    | st.booleans().map(lambda value: Constant("yesno", value))
)
properties = st.sampled_from(sorted(KINDS)).map(Property)


def _joined(parts: list[Expression], kind: type[Both] | type[Either]) -> Expression:
    flat = tuple(p for part in parts for p in (part.parts if isinstance(part, kind) else (part,)))
    return kind(flat)


def expressions() -> st.SearchStrategy[Expression]:
    """Any tree that could have been read, of right kinds or not."""
    leaves: st.SearchStrategy[Expression] = (
        st.builds(Comparison, properties, st.sampled_from(SIGNS), constants | properties)
        | st.builds(
            Comparison,
            properties,
            st.sampled_from(["like", "not like"]),
            texts.map(lambda value: Constant("text", value)),
        )
        | st.builds(
            Membership, properties, st.lists(constants, min_size=1, max_size=4).map(tuple), inside=st.booleans()
        )
        | st.builds(Presence, properties, st.booleans())
        | st.builds(Range, properties, constants | properties, constants | properties, st.booleans())
    )
    return st.recursive(
        leaves,
        lambda inner: (
            inner.map(Negation)
            | st.builds(_joined, st.lists(inner, min_size=2, max_size=3), st.sampled_from([Both, Either]))
        ),
        max_leaves=8,
    )

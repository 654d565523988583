"""Texts with placeholders: `{name}`, `{key}` and an element's own keys. `{{name}}` stands for `{name}` itself; all
other braces are the shell's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from rota.core.pipelines.definition import Stage
from rota.core.pipelines.quoting import Part, parts_of_command, parts_of_path, quoted

#: Fields of a stage that are commands.
COMMANDS: Final = ("run", "skip_if", "run_if")


class Template(Struct, frozen=True):
    """A text, read once. Literal texts and placeholders with their contexts."""

    parts: tuple[Part, ...]
    of_command: bool = True

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names in it, each once."""
        return tuple(dict.fromkeys(part[0] for part in self.parts if not isinstance(part, str)))

    def expand(self, values: Mapping[str, str]) -> str:
        """The text with these values; in a command, quoted for the shell. Raises `KeyError`."""
        if len(self.parts) == 1 and isinstance(self.parts[0], str):
            return self.parts[0]
        if not self.of_command:
            return "".join(part if isinstance(part, str) else values[part[0]] for part in self.parts)
        expanded: list[str] = []
        last = len(self.parts) - 1
        for at, part in enumerate(self.parts):
            if isinstance(part, str):
                expanded.append(part)
                continue
            name, context = part
            following = self.parts[at + 1] if at < last else ""
            # Two values side by side are told apart by quotes.
            after = following if isinstance(following, str) else "("
            expanded.append(quoted(values[name], context, before="".join(expanded[-1:]), after=after))
        return "".join(expanded)


def command_template(text: str) -> Template:
    """Raises `BadInput` for a placeholder that cannot be quoted where it is."""
    return Template(parts_of_command(text))


def path_template(text: str) -> Template:
    """Of the name of a file, in which nothing is quoted."""
    return Template(parts_of_path(text), of_command=False)


def stage_templates(stage: Stage) -> dict[str, Template]:
    """The texts of a stage by their fields, without empty ones. Raises `BadInput`."""
    found = {name: command_template(text) for name in COMMANDS if (text := getattr(stage, name))}
    if stage.redefines:
        found["redefines"] = path_template(stage.redefines)
    return found

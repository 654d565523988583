"""The rules that the manager sent last. They change while jobs run, so components keep this and not a copy."""

from __future__ import annotations

from rota.wire.orders import Rules


class CurrentRules:
    """Holds defaults until the manager sends its rules."""

    __slots__ = ("contain_first", "current")

    def __init__(self) -> None:
        self.current = Rules(15.0, 7 * 86400.0, 5.0, 16 * 1024 * 1024, "auto")
        self.contain_first = False  #: must every job be in its control groups before its command starts?

    def replace(self, rules: Rules) -> None:
        """Follow these from now on."""
        self.current = rules
        hooks = bool(rules.prologue or rules.epilogue)
        self.contain_first = hooks or "cgroup" in (rules.containment, rules.enforce_memory)

"""Checks of all site records: the kinds of `plan.site.records`, and the kinds that hold policies."""

from __future__ import annotations

from typing import Any, Final

from rota.core.admission.rule_records import check_rule
from rota.errors import BadInput
from rota.plan.policy.policy_records import FAIR_SHARE, check_queue, read_fair_share
from rota.plan.policy.quota_records import check_period, check_quota
from rota.plan.site.records import KINDS, SITE_CHECKS, Check, shortened

_NAME_MAX: Final = 255


def check_record(kind: str, name: str, value: Any) -> None:
    """Raise `BadInput` unless the name and the value fit the kind. Other records are not looked at."""
    if kind not in KINDS:
        raise BadInput(f"there is no kind '{shortened(kind)}' of records", hint=f"use one of {', '.join(KINDS)}")
    if not 0 < len(name) <= _NAME_MAX or not name.isprintable():
        raise BadInput(
            f"'{shortened(name)}' cannot be the name of a {kind.replace('_', ' ')}",
            hint="use up to 255 printable characters",
        )
    check = CHECKS.get(kind)
    if check is not None and value is not None:
        check(name, value)


def _check_setting(name: str, value: Any) -> None:
    if name == FAIR_SHARE:
        read_fair_share(value)
    else:
        SITE_CHECKS["setting"](name, value)


#: Kind → check of its values; a kind without one takes any JSON.
CHECKS: Final[dict[str, Check]] = {
    **SITE_CHECKS,
    "setting": _check_setting,
    "queue": check_queue,
    "rule": check_rule,
    "quota": check_quota,
    "calendar": check_period,
}

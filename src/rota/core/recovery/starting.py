"""What a manager writes before it recovers, so that the next start sees that this one happened."""

from __future__ import annotations

from rota.core.changes import Changes
from rota.core.recovery.restored_leases import RESTORED_AT, RESTORED_SEEN
from rota.core.site.limits import unused_array_limits
from rota.core.stored import StoreSnapshot


def starting_changes(snapshot: StoreSnapshot) -> Changes:
    """The changes of a start. Limits that no job can name any more are removed, from the snapshot, too."""
    changes = Changes()
    for name in unused_array_limits(snapshot):
        changes.limits[name] = None
        del snapshot.limits[name]
    if restored_at := snapshot.meta.get(RESTORED_AT):
        changes.meta[RESTORED_SEEN] = restored_at
    return changes

"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure: the time of one example is not judged.
settings.register_profile("rota", deadline=None)
settings.load_profile("rota")

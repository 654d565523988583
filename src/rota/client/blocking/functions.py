# Derived from rota/client/aio/functions.py by `make client`: change it there.
"""Calls of Python functions that are waited for."""

from __future__ import annotations

import sys
from typing import Any

from rota.client import submission
from rota.client.blocking.jobs import JobOperations
from rota.client.blocking.watching import WatchOperations
from rota.client.calls import Call
from rota.client.functions import entry_of
from rota.client.results import value_of
from rota.client.session import AddOptions


class CallOperations(JobOperations, WatchOperations):
    """What can be done with functions."""

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function in a job and wait for what it returns. It is given by its name, or itself.

        Raises what the function raised, if that is a builtin exception, else `CallFailed`.

            manager.call("math:hypot", 3, 4)
        """
        if isinstance(function, Call):  # `ask`, by its older name
            return self.ask(function)
        entry = {"retries": 0, "python": sys.executable} | entry_of(function, args, kwargs)
        batches, _ = submission.prepare([entry], {}, check=False)
        added = self.submit(submission.new_id(), batches, AddOptions(fresh=True))
        (job,) = added.added
        self.wait(job)
        (view,) = self.results(job)
        return value_of(view)

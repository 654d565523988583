"""All messages between clients and the manager, in both directions.

A command must start fast, so clients import from here what they need, and nothing that only runners say.
"""

from rota.wire.answers import *  # noqa: F403
from rota.wire.channels import *  # noqa: F403
from rota.wire.greeting import *  # noqa: F403
from rota.wire.job_structs import *  # noqa: F403
from rota.wire.machines import *  # noqa: F403
from rota.wire.new_after import *  # noqa: F403
from rota.wire.new_use import *  # noqa: F403
from rota.wire.pipelines import *  # noqa: F403
from rota.wire.requests import *  # noqa: F403
from rota.wire.results import *  # noqa: F403

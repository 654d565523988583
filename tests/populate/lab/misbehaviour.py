"""What happens to a key while it is computed, as a file says."""

import os
import signal
import time


def misbehave(number, cut=None):
    with open(os.path.join(os.environ["LAB"], "made"), "a") as made:
        made.write(f"{number} {os.getpid()}\n")
    try:
        with open(os.path.join(os.environ["LAB"], f"key-{number}")) as file:
            what = file.read()
    except FileNotFoundError:
        return
    if what == "raise":
        raise ValueError(f"recording {number} is broken")
    if what == "exit":
        raise SystemExit(3)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "deadlock":
        raise OperationalError(1213, "Deadlock found when trying to get lock")
    if what == "term":
        os.kill(os.getpid(), signal.SIGTERM)
    if what == "cut":
        os.unlink(os.path.join(os.environ["LAB"], f"key-{number}"))
        cut()
    if what == "hang":
        time.sleep(1000)
    if what == "swallow":
        try:
            time.sleep(1000)
        except Exception:
            pass


class OperationalError(Exception):
    """As drivers of MySQL raise it."""

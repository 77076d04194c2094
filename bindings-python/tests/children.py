"""Children of os.fork, for the tests that look at what a limiter is in them."""

import os
import signal
import time
from collections.abc import Callable

import pytest


def in_child(work: Callable[[], None], seconds: float = 15) -> None:
    """Run `work` in a forked child, and end a child that hangs."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hung")

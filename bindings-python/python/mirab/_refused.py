"""The exception that says a refusal where no value can be returned."""

from mirab._mirab import Decision


class Refused(Exception):  # noqa: N818 - a refusal is no error of the limiter
    """A decorator or a context manager was refused; `decision` says why and for how long."""

    def __init__(self, decision: Decision) -> None:
        """Carry `decision`; the text names the limit and the wait."""
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:
        """Name the limit and the wait."""
        wait = self.decision.retry_after
        when = "no wait would help" if wait is None else f"retry after {wait} seconds"
        return f"refused by {self.decision.limit_name}: {when}"


Refused.__module__ = "mirab"

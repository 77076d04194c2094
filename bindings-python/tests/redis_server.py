"""A Redis of a test's own, which the test may freeze, kill, and ask what it has seen."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PATIENCE = 30  # seconds for whatever takes a moment


class Server:
    """A Redis behind a socket in a folder of its own; it keeps nothing on disk."""

    def __init__(self) -> None:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory(prefix="mirab-")
        self.path = Path(self._folder.name) / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def uri(self, parameters: str = "timeout_ms=5000") -> str:
        return f"redis+unix://{self.path}?{parameters}"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        program = os.environ.get("MIRAB_REDIS_SERVER", "redis-server")
        options = ["--port", "0", "--unixsocket", str(self.path), "--save", "", "--loglevel", "warning"]
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", program, *options, "--dir", self._folder.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, "redis-server ended"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.002)

    def kill(self) -> None:
        """End it as a crash does."""
        assert self._process
        self._process.kill()
        self._process.wait()
        self._process = None

    def pid(self) -> int:
        """Its process, for another that freezes it."""
        assert self._process
        return self._process.pid

    def freeze(self) -> None:
        """Stop it where it stands: the kernel still takes connections for it."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self._process:
            self.kill()
        self._folder.cleanup()

    def _answers(self) -> bool:
        try:
            return self.ask("PING") == "PONG"
        except OSError:
            return False

    def ask(self, *words: str) -> str:
        """Execute a command whose reply is one text."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.path))
            parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            connection.sendall(f"*{len(words)}\r\n{parts}".encode())
            with connection.makefile("rb") as wire:
                reply = wire.readline().decode().strip()
                if reply.startswith("$"):
                    return wire.read(int(reply[1:])).decode()
                assert not reply.startswith("-"), reply
                return reply[1:]

    def decisions_asked(self) -> int:
        """How many script calls it has executed."""
        calls = re.findall(r"cmdstat_eval(?:sha)?:calls=(\d+)", self.ask("INFO", "commandstats"))
        return sum(map(int, calls))

    def connections(self) -> int:
        """How many there are beside the one that asks."""
        return len(self.ask("CLIENT", "LIST").splitlines()) - 1

"""Who is measured: one file a peer, each with its documented way to be fast."""

from __future__ import annotations

from contenders import floors, limits_memory, mirab_memory, throttled_memory, token_bucket_memory
from contenders.contender import Contender

ALL: tuple[Contender, ...] = (
    *mirab_memory.CONTENDERS,
    *limits_memory.CONTENDERS,
    *throttled_memory.CONTENDERS,
    *token_bucket_memory.CONTENDERS,
    *floors.CONTENDERS,
)

__all__ = ["ALL", "Contender"]

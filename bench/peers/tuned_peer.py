"""Polyphase with kernels and layouts chosen by measured times: what its estimates cost shows beside it."""

from __future__ import annotations

from peers import polyphase_peer
from work import Work

NAME = "polyphase, tuned"


class Runner(polyphase_peer.Runner):
    def __init__(self, work: Work, threads: int, isa: str) -> None:
        super().__init__(work, threads, isa, tune=True, tune_threads=threads)


def forms(work: Work, threads: int, isa: str) -> list[Work]:
    return polyphase_peer.forms(work, threads, isa, tune=True, tune_threads=threads)

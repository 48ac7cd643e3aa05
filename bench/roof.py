"""What this machine can do, measured here and now, and which of it bounds a layer."""

from __future__ import annotations

import dataclasses

import polyphase


@dataclasses.dataclass(frozen=True)
class Roof:
    flops: float  # FMA loop on registers alone, FLOP/s of all threads
    bandwidths: tuple[tuple[int, float], ...]  # bytes touched, bytes/s

    @classmethod
    def measured(cls, threads: int) -> Roof:
        sizes = (1 << 18, 1 << 21, 1 << 24, 1 << 28)
        return cls(polyphase.measured_peak_flops(threads), tuple((size, polyphase.measured_bandwidth(size, threads)) for size in sizes))

    def bandwidth(self, bytes_: float) -> float:
        """Of the smallest cache that holds so much, or of the memory."""
        return next((rate for size, rate in self.bandwidths if bytes_ <= size), self.bandwidths[-1][1])

    def seconds(self, flops: float, bytes_: float) -> float:
        """The least that so much work takes (roofline model: Williams, Waterman, Patterson 2009)."""
        return max(flops / self.flops, bytes_ / self.bandwidth(bytes_))

    def bound(self, flops: float, bytes_: float) -> str:
        return "compute" if flops / self.flops >= bytes_ / self.bandwidth(bytes_) else "memory"

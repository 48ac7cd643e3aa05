"""torch.compile with Inductor and freezing."""

from __future__ import annotations

from peers import torch_peer

NAME = "torch.compile"


class Runner(torch_peer.Runner):
    compiled = True

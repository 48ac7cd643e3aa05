"""PyTorch on channels-last tensors: what it is given and what it gives lie so."""

from __future__ import annotations

from peers import torch_peer

NAME = "torch channels-last"


class Runner(torch_peer.Runner):
    channels_last = True

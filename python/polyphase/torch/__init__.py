"""PyTorch's door: torch.compile(net, backend="polyphase"), and converters of one's own.

    fast = torch.compile(net.eval(), backend="polyphase")      # needs no import of polyphase
    with torch.no_grad():
        y = fast(x)
"""

from __future__ import annotations

from ._backend import backend
from ._converters import converter, remove_converter

__all__ = ["backend", "converter", "remove_converter"]

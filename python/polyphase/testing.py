"""For the tests of those who write networks: pytest_plugins = ["polyphase.testing"].

    def test_my_network(accepted_by):
        accepted_by(MyNetwork(), (torch.zeros(1, 3, 64, 64),), "torch_tensorrt", "onnxruntime")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ._legalise import check_module


@pytest.fixture
def accepted_by() -> Callable[..., None]:
    """Fails the test, with the lines of the module, where an engine would not take its transposed convolutions."""

    def expect(net: Any, example: Sequence[Any], *targets: str) -> None:
        found = check_module(net, example, targets=targets)
        words = [f"{finding['target']}: {finding['why']} ({finding['where'] or finding['node']}); {finding['source']}" for finding in found]
        assert not found, "\n".join([*words, "polyphase.legalise(net, example, target=...) exchanges such layers."])

    return expect

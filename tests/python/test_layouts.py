"""Images of the caller's that a kernel reads and writes as they lie."""

from __future__ import annotations

import polyphase
import pytest
import torch

LAYERS = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)


@pytest.mark.parametrize(("kernel", "sizes"), [(12, (700,)), (4, (31, 44)), (4, (20, 18, 25))])
def test_depthwise_layer_turns_no_image(kernel: int, sizes: tuple[int, ...]) -> None:
    """Vectors along the pixels pay only where both images lie channels-first: neither alone is worth it."""
    layer = LAYERS[len(sizes) - 1](54, 54, kernel, stride=2, groups=54).eval()
    engine = polyphase.compile(layer, (torch.randn(1, 54, *sizes),), target="avx2")
    assert [step["rows"] for step in engine.info()["steps"]] == [["conv_transpose_pixels"]]

"""Layers whose kernel is no longer than their stride, between channels-first images, with what follows them fused: the paths
of conv_disjoint (straight stores, held sums, single channels line by line, stores past the caches, gaps) against PyTorch."""
import pytest
from fused_layers import check, count_taking

GEOMETRIES = {
    "whole vectors": (2, (24, 20), 2, 2, {}, (16, 32)),
    "lines of no whole vectors": (2, (96, 40), 2, 2, {}, (29, 33)),
    "lines shorter than a vector": (3, (40, 5), 2, 2, {}, (5, 6, 3)),
    "three phases": (1, (61, 40), 3, 3, {}, (2000,)),
    "four phases": (2, (64, 24), 4, 4, {}, (11, 32)),
    "nine phases": (2, (12, 10), 9, 9, {}, (5, 24)),
    "kernel shorter than the stride": (3, (20, 6), 1, 2, {"output_padding": 1}, (4, 5, 19)),
    "gaps along some axes": (2, (96, 24), (1, 3), (4, 3), {"output_padding": (2, 0)}, (7, 21)),
    "crop": (2, (20, 6), 4, 4, {"padding": (1, 2)}, (7, 21)),
    "outputs behind the image": (2, (20, 6), 2, 2, {"output_padding": 1}, (8, 16)),
    "many input channels": (2, (700, 9), 2, 2, {}, (5, 16)),
    "groups": (2, (24, 36), 2, 2, {"groups": 4}, (9, 16)),
    "depthwise": (2, (70, 70), 2, 2, {"groups": 70}, (9, 16)),
    "one channel, lines of no whole vectors": (2, (40, 40), 2, 2, {"groups": 40}, (9, 37)),
    "one channel, lines shorter than a vector": (3, (40, 80), 2, 2, {"groups": 40}, (5, 6, 3)),
    "one channel, three phases": (2, (1, 7), 3, 3, {}, (11, 50)),
    "one channel, four phases": (1, (12, 12), 4, 4, {"groups": 12}, (3000,)),
    "one channel, crop and outputs behind the image": (2, (40, 40), 3, 3, {"groups": 40, "padding": 1, "output_padding": (0, 2)}, (12, 33)),
    "one channel, past the caches": (2, (24, 24), 2, 2, {"groups": 24}, (200, 283)),
    "past the caches": (2, (24, 20), 2, 2, {}, (200, 288)),
    "past the caches, of no whole cache lines": (2, (24, 20), 2, 2, {}, (200, 283)),
}


@pytest.mark.parametrize("ending", ["none", "alike", "residual"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_kernel_no_longer_than_its_stride(name, ending):
    check(GEOMETRIES[name], ending, len(name))


def test_most_of_these_geometries_take_it():
    taken = count_taking("conv_transpose_disjoint", GEOMETRIES.values())
    assert taken >= 12, "estimates have changed: write down geometries that take the kernel"

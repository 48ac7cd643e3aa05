"""The libraries as static archives (BUILD_SHARED_LIBS=OFF): what no room lists is missing when a program is linked.

Part of the full run alone: it builds once more.
"""
from __future__ import annotations

import numpy as np
from conftest import find_build
from test_embedding import MODEL, ROOT, build_example, cmake, expected, picture, run


def test_a_program_links_with_the_archives(tmp_path):
    archives, prefix = find_build().parent / "archives", tmp_path / "prefix"  # beside the release build, whose objects the compiler's cache has
    off = [f"-D{name}=OFF" for name in ("BUILD_SHARED_LIBS", "POLYPHASE_PROGRAMS", "POLYPHASE_TESTS")]
    run(cmake(), "-S", ROOT, "-B", archives, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *off)
    run(cmake(), "--build", archives, "--target", "polyphase_lib_polyphase", "polyphase_lib_runtime")
    for part in ("polyphase", "runtime"):
        run(cmake(), "--install", archives, "--prefix", prefix, "--component", part)
    program = build_example("c", prefix, tmp_path) / "upscale"
    pixels = picture(8, 9, 3)
    pixels.tofile(tmp_path / "in")
    run(program, MODEL, 8, 9, tmp_path / "in", tmp_path / "out")
    np.testing.assert_allclose(np.fromfile(tmp_path / "out", np.float32).reshape(1, 1, 24, 27), expected(pixels), atol=2e-5)

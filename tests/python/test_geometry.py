"""Random transposed convolutions on every kernel row of every instruction cluster, against PyTorch, bit for bit.

A slice of about 25 s, or with --full 100,000 geometries. Each failing case is printed as one line, which reproduces it alone:
echo 'LINE' | build/release/tests/geometry/geometry_test -
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, find_build

FULL_COUNT = 100_000
SLICE_SECONDS = 15


def start(program, first_seed: int, count: int, seconds: int | None) -> subprocess.Popen:
    oracle = subprocess.Popen([sys.executable, str(ROOT / "tests/python/geometry_oracle.py"), "--count", str(count), "--seed", str(first_seed)],
                              stdout=subprocess.PIPE)
    limit = [] if seconds is None else [str(seconds)]
    reader = subprocess.Popen([str(program), "-", *limit], stdin=oracle.stdout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    oracle.stdout.close()  # so that the oracle notices when its reader ends
    reader.oracle = oracle
    return reader


def test_every_kernel_gives_pytorchs_numbers(full, slice_seed, capsys):
    program = find_build() / "tests/geometry/geometry_test"
    if not program.exists():
        pytest.fail(f"{program} is not built")
    workers = os.cpu_count() or 1
    each = -(-FULL_COUNT // workers)
    first = slice_seed * 1_000_000
    readers = [start(program, first + i * each, each, None if full else SLICE_SECONDS) for i in range(workers)]
    outputs = [reader.communicate()[0] for reader in readers]
    for reader in readers:
        reader.oracle.wait()
    passed = sum(int(found) for output in outputs for found in re.findall(r"(\d+) passed, \d+ failed", output))
    with capsys.disabled():
        print(f"\n{passed} geometries from seed {first} (--slice-seed {slice_seed})")
    assert all(reader.returncode == 0 for reader in readers), "\n".join(outputs)
    assert passed >= (FULL_COUNT if full else 200)

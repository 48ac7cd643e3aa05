"""The build system configures as `pip install .` asks it to: without programs and tests. (The wheel itself is built by the full run.)"""
from __future__ import annotations

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_package_configures_alone(tmp_path):
    section = (ROOT / "pyproject.toml").read_text().split("[tool.scikit-build.cmake.define]\n")[1].split("\n[")[0]
    settings = dict(re.findall(r"^(\w+) = (true|false)$", section, re.MULTILINE))
    assert settings["POLYPHASE_PROGRAMS"] == settings["POLYPHASE_TESTS"] == "false"
    words = [f"-D{name}={value}" for name, value in settings.items()]
    script = f'cd "{ROOT}" && source scripts/toolchain.sh && CXX=$(find_cxx) "$(find_cmake)" -S . -B "$0" "$@"'
    done = subprocess.run(["bash", "-c", script, str(tmp_path), *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]

"""Archives of torch.export.save in every layout that PyTorch has written: programs of older ones, whose weights are
pickled, give the same numbers; pickles that hold more than tensors are refused, and nothing in them runs."""

from __future__ import annotations

import io
import pathlib
import pickle
import subprocess
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

HERE = pathlib.Path(__file__).parent
AUTO = torch.export.Dim.AUTO


# Written by the PyTorch of their name: a transposed convolution, tied weights, a buffer, a constant, open sizes.
@pytest.mark.parametrize("version", ["2.6.0", "2.8.0"])
def test_programs_of_older_pytorch(polyphase, tmp_path, version):
    archives = HERE / "torch_archives"
    arrays = np.load(archives / f"up_{version}.npz")
    got = polyphase.run_arrays(archives / f"up_{version}.pt2", {"x": arrays["x"], "skips.s": arrays["s"]}, tmp_path)
    np.testing.assert_allclose(got["output_0"], arrays["y"], rtol=1e-5, atol=1e-5)


class Up(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 3, 3, 2, 1, output_padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.mix = nn.Linear(3, 3)
        self.again = nn.Linear(3, 3)
        self.again.weight = self.mix.weight
        # Views of one storage, a type with a tensor's own way into a pickle, a scalar.
        whole = torch.randn(4, 6)
        self.register_buffer("part", whole[1:, 1::2].t())
        self.register_buffer("other", whole[0, :3])
        self.register_buffer("narrow", torch.randn(3).half(), persistent=False)
        self.register_buffer("wide", torch.arange(3).to(torch.uint16))
        self.table = torch.arange(3.0)

    def forward(self, x):
        y = torch.relu(self.norm(self.up(x))).movedim(1, -1)
        y = self.again(self.mix(y)) @ self.part + self.other * self.narrow + self.wide.to(torch.float32)
        return y + self.table


def member(tensors: dict) -> bytes:
    file = io.BytesIO()
    torch.save(tensors, file)
    return file.getvalue()


def older(program, layout: str, weights: bytes | None = None) -> bytes:
    """The program in an older layout; `weights` stand in for the pickled weights."""
    now, out = io.BytesIO(), io.BytesIO()
    torch.export.save(program, now)
    weights = member(program.state_dict) if weights is None else weights
    constants = member(program.constants) if program.constants else b""
    with zipfile.ZipFile(now) as archive, zipfile.ZipFile(out, "w") as made:
        [path] = [name for name in archive.namelist() if "/models/" in name]
        root = path.split("/", maxsplit=1)[0]
        if layout == "2.7":
            made.writestr("serialized_exported_program.json", archive.read(path))
            made.writestr("serialized_state_dict.pt", weights)
            made.writestr("serialized_constants.pt", constants)
            made.writestr("version", "8.2")
        else:
            for name in archive.namelist():
                if "/data/" not in name or "/.data/" in name:
                    made.writestr(name, archive.read(name))
            made.writestr(f"{root}/data/weights/model.pt", weights)
            made.writestr(f"{root}/data/constants/model.pt", constants)
    return out.getvalue()


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(3)
    module = Up().eval()
    module.norm.running_mean.uniform_(-1, 1)
    x = torch.randn(1, 2, 3, 4)
    return torch.export.export(module, (x,), dynamic_shapes=({0: AUTO, 2: AUTO, 3: AUTO},)), module, x


@pytest.mark.parametrize("layout", ["2.7", "2.8"])
def test_programs_in_older_layouts(polyphase, tmp_path, program, layout):
    exported, module, x = program
    (tmp_path / "m.pt2").write_bytes(older(exported, layout))
    got = polyphase.run_arrays(tmp_path / "m.pt2", {"x": x.numpy()}, tmp_path)["output_0"]
    np.testing.assert_allclose(got, module(x).detach().numpy(), rtol=1e-5, atol=1e-5)


class Runs:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def with_pickle(tensors: dict, data: bytes) -> bytes:
    """What torch.save writes of the tensors, with another pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(member(tensors))) as given, zipfile.ZipFile(out, "w") as made:
        for name in given.namelist():
            made.writestr(name, data if name.endswith("data.pkl") else given.read(name))
    return out.getvalue()


@pytest.mark.parametrize("protocol", [2, 4])
def test_code_in_a_pickle_is_refused_and_not_run(polyphase, tmp_path, program, protocol):
    marker = tmp_path / "ran"
    for hostile, words in (
        ({"up.weight": Runs(open, str(marker), "w")}, "would run code"),
        (Runs(subprocess.check_call, ["touch", str(marker)]), "check_call"),
        ({"up.weight": pathlib.PurePosixPath("x")}, "PurePosixPath"),
        ({"up.weight": nn.ReLU()}, "torch.nn.modules.activation.ReLU"),
        ({Up: 1}, "test_torch_archives.Up"),
    ):
        data = pickle.dumps(hostile, protocol=protocol)
        for layout in ("2.7", "2.8"):
            (tmp_path / "m.pt2").write_bytes(older(program[0], layout, with_pickle({"a": torch.ones(2)}, data)))
            said = polyphase("compile", tmp_path / "m.pt2", "-o", tmp_path / "m.ppe", expect=1).stderr
            assert words in said
            assert "would run code" in said
    assert not marker.exists()


def test_weights_that_are_no_tensors_are_named(polyphase, tmp_path, program):
    for wrong, words in ((3.5, "'up.weight'"), (torch.ones(2, 2).to_sparse(), "would run code"), (torch.ones(2, 2), "4D weight")):
        weights = member({**program[0].state_dict, "up.weight": wrong})
        (tmp_path / "m.pt2").write_bytes(older(program[0], "2.7", weights))
        said = polyphase("compile", tmp_path / "m.pt2", "-o", tmp_path / "m.ppe", expect=1).stderr
        assert words in said, said


# Codes that make a reader without limits fall: a stack that is empty, a memo that is not there, depth, sizes, cycles.
HOSTILE = {
    "empty": b"",
    "nothing": b"\x80\x02.",
    "protocol": b"\x80\x09}.",
    "no_mark": b"\x80\x02}u.",
    "below_mark": b"\x80\x02}(K\x01s.",
    "no_memo": b"\x80\x02h\x07.",
    "no_end": b"\x80\x02}",
    "long_text": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "long_integer": b"\x80\x02\x8a\xff" + b"\x01" * 255 + b".",
    "cycle": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
    "deep": b"\x80\x02" + b"(" * 200000 + b"t" * 200000 + b".",
    "deep_lists": b"\x80\x02" + b"]" * 200000 + b"a" * 199999 + b".",
    "persistent": b"\x80\x02}X\x01\x00\x00\x00aNQs.",
    "call_of_data": b"\x80\x02}X\x01\x00\x00\x00a})Rs.",
    "call_without_arguments": b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n)Rs.",
    "parameter_of_itself": b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_parameter\nctorch._utils\n_rebuild_parameter\n)R\x85Rs.",
    "is_a_list": b"\x80\x02].",
    "unknown_code": b"\x80\x02}\xfe.",
}


def test_hostile_pickles_are_refused(polyphase, tmp_path, program):
    for name, data in HOSTILE.items():
        (tmp_path / "m.pt2").write_bytes(older(program[0], "2.7", with_pickle({"a": torch.ones(2)}, data)))
        said = polyphase("compile", tmp_path / "m.pt2", "-o", tmp_path / "m.ppe", expect=1).stderr
        assert said.startswith("polyphase: error: "), (name, said)


def test_archives_that_are_cut_are_called_so(polyphase, tmp_path, program):
    written = io.BytesIO()
    torch.export.save(program[0], written)
    whole = written.getvalue()
    for size in (8, len(whole) // 2, len(whole) - 1):
        (tmp_path / "m.pt2").write_bytes(whole[:size])
        done = subprocess.run([str(polyphase.path), "check", str(tmp_path / "m.pt2")], capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "the archive cannot be read: " in done.stderr, done.stderr
        assert "copy it again, or save the program again" in done.stderr


def test_broken_pickles_are_refused_or_right(polyphase, tmp_path, program):
    with zipfile.ZipFile(io.BytesIO(member(program[0].state_dict))) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("data.pkl")]
        whole = archive.read(name)
    random = np.random.default_rng(1)
    for _ in range(40):
        broken = bytearray(whole)
        broken[random.integers(len(whole))] ^= 1 << random.integers(8)
        weights = with_pickle(program[0].state_dict, bytes(broken))
        (tmp_path / "m.pt2").write_bytes(older(program[0], "2.8", weights))
        done = subprocess.run([str(polyphase.path), "check", str(tmp_path / "m.pt2")], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 4), done.stderr

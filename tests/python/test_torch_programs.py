"""Programs of torch.export (.pt2) against the module itself: every overload of the converters' table, with fixed and
open sizes, as exported and decomposed."""

from __future__ import annotations

import io
import json
import subprocess
import warnings
import zipfile

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from conftest import wants_full
from torch_cases import CASES, Case

AUTO = torch.export.Dim.AUTO


class Call(nn.Module):
    """A function as a module, in eval mode."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def export(module: nn.Module, inputs, dynamic=None, decomposed=False):
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.export.export(module.eval(), tuple(inputs), dynamic_shapes=dynamic)
        return program.run_decompositions() if decomposed else program


def targets(program) -> set[str]:
    found = set()
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            found |= {str(node.target) for node in module.graph.nodes if node.op == "call_function"}
    return found


def check(polyphase, folder, program, inputs, want, tolerance=2e-6, names=None):
    path = folder / "model.pt2"
    torch.export.save(program, path)
    names = names or [f"input_{i}" for i in range(len(inputs))]
    got = polyphase.run_arrays(path, {name: tensor.detach().numpy() for name, tensor in zip(names, inputs)}, folder)
    want = [want] if isinstance(want, torch.Tensor) else list(want)
    assert len(got) == len(want)
    for i, expected in enumerate(want):
        expected, found = expected.detach().numpy(), got[f"output_{i}"]
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        scale = max(float(np.abs(expected[np.isfinite(expected)]).max(initial=0)), 1e-6) if expected.dtype.kind == "f" else 1
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


FORMS = ("static", "dynamic", "decomposed")


def chosen(full: bool, seed: int) -> list[tuple[Case, str]]:
    every = [(case, form) for case in CASES for form in FORMS if form != "dynamic" or not case.static_only]
    return every if full else every[seed % 8 :: 8]


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        pairs = chosen(wants_full(metafunc.config), metafunc.config.getoption("--slice-seed"))
        metafunc.parametrize(("case", "form"), pairs, ids=[f"{case.name}-{form}" for case, form in pairs])


def made(case: Case) -> nn.Module:
    module = case.make()
    return module if isinstance(module, nn.Module) else Call(module)


def test_overloads(polyphase, tmp_path, case: Case, form: str):
    torch.manual_seed(1)
    inputs = case.inputs()
    module = made(case)
    shapes = tuple({axis: AUTO for axis in range(x.dim())} for x in inputs)
    dynamic = None if form != "dynamic" else {"inputs": shapes} if isinstance(module, Call) else shapes
    program = export(module, [x.clone() for x in inputs], dynamic, form == "decomposed")
    with torch.backends.mkldnn.flags(enabled=False):  # whose gelu of infinity is NaN on AVX-512
        want = module.eval()(*[x.clone() for x in inputs])
    check(polyphase, tmp_path, program, inputs, want, case.tolerance, case.names or [f"inputs_{i}" for i in range(len(inputs))])


def listed(polyphase) -> list[dict]:
    return json.loads(polyphase("converters", "--json").stdout)["converters"]


def test_every_declaration_is_pytorchs_own(polyphase):
    entries = listed(polyphase)
    for entry in entries:
        library, name, overload = entry["name"].split(".")
        packet = getattr(getattr(torch.ops, library), name, None)
        assert packet is not None and overload in packet.overloads(), entry["name"]
        schema = str(getattr(packet, overload)._schema).removeprefix("aten::")
        if entry["in_place"]:
            assert "(a!) self" in schema
        else:
            assert entry["declaration"] == schema
    assert len(entries) >= 200


def test_the_core_set_is_taken(polyphase):
    """What is left out of it computes gradients, draws random numbers, writes into operands, or gives no tensor."""
    known, lacking = {entry["name"] for entry in listed(polyphase)}, set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ():
            target = getattr(packet, overload)
            gives_tensors = all("Tensor" in str(result.type) for result in target._schema.returns)
            left_out = "backward" in name or torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable or not gives_tensors
            if torch.Tag.core in target.tags and not left_out:
                lacking |= {str(target)} - known
    assert not lacking


def test_every_overload_has_a_case(polyphase):
    # PyTorch itself cannot run this one on a CPU; it has a test of its own below.
    exercised = {case.overload for case in CASES if case.call} | {"aten.convolution_overrideable.default"}
    assert not {entry["name"] for entry in listed(polyphase) if not entry["in_place"]} - exercised


def test_every_case_exercises_its_overload(full, slice_seed):
    calls = [case for case in CASES if case.call]
    for case in calls if full else calls[slice_seed % 8 :: 8]:
        assert case.overload in targets(export(made(case), case.inputs())), case.name


def test_the_convolution_that_devices_override(polyphase, tmp_path):
    module, x = nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2), torch.randn(2, 4, 5, 6)
    file = io.BytesIO()
    torch.export.save(export(module, [x], None, True), file)
    with zipfile.ZipFile(file) as given, zipfile.ZipFile(tmp_path / "model.pt2", "w") as changed:
        for name in given.namelist():
            changed.writestr(name, given.read(name).replace(b"aten.convolution.default", b"aten.convolution_overrideable.default"))
    got = polyphase.run_arrays(tmp_path / "model.pt2", {"input": x.numpy()}, tmp_path)["output_0"]
    np.testing.assert_allclose(got, module(x).detach().numpy(), rtol=1e-5, atol=1e-5)


class Skip(nn.Module):
    """As large as that skip connection."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1)

    def forward(self, x, skips):
        return self.up(torch.relu(self.down(x)), output_size=skips["first"][0].shape[2:]) + skips["first"][0]


@pytest.mark.parametrize("decomposed", [False, True])
def test_one_engine_for_odd_and_even_output_sizes(polyphase, tmp_path, decomposed):
    module = Skip().eval()
    shapes = ({0: AUTO, 2: AUTO, 3: AUTO}, {"first": [{0: AUTO, 2: AUTO, 3: AUTO}]})
    x, skip = torch.randn(2, 3, 16, 16), torch.randn(2, 4, 16, 15)
    torch.export.save(export(module, (x, {"first": [skip]}), shapes, decomposed), tmp_path / "model.pt2")
    engine = tmp_path / "model.ppe"
    polyphase("compile", tmp_path / "model.pt2", "-o", engine)
    for height, width in ((16, 15), (15, 16), (15, 15), (16, 16)):
        skip = torch.randn(2, 4, height, width)
        got = polyphase.run_arrays(engine, {"x": x.numpy(), "skips.first.0": skip.numpy()}, tmp_path)["output_0"]
        np.testing.assert_allclose(got, module(x, {"first": [skip]}).detach().numpy(), rtol=1e-5, atol=1e-5)
    np.savez(tmp_path / "in.npz", **{"x": x.numpy(), "skips.first.0": np.zeros((2, 4, 18, 16), np.float32)})
    said = polyphase("run", engine, "--inputs", tmp_path / "in.npz", expect=1).stderr
    assert "output padding must be smaller than either stride or dilation" in said


def test_what_the_export_took_for_granted_is_tested(polyphase, tmp_path):
    def branch(x, y):
        return x * 2 if x.shape[0] > 2 * y.shape[0] + 1 else x + 1

    class Branch(nn.Module):
        def forward(self, x, rest):
            return branch(x, rest["y"])

    inputs = (torch.randn(9, 2), {"y": torch.randn(3)})
    program = export(Branch(), inputs, ({0: AUTO}, {"y": {0: AUTO}}))
    check(polyphase, tmp_path, program, [inputs[0], inputs[1]["y"]], branch(inputs[0], inputs[1]["y"]), names=["x", "rest.y"])
    np.savez(tmp_path / "in.npz", **{"x": np.zeros((6, 2), np.float32), "rest.y": np.zeros(3, np.float32)})
    said = polyphase("run", tmp_path / "model.pt2", "--inputs", tmp_path / "in.npz", expect=1).stderr
    assert "the program was exported for sizes with " in said


def test_in_place_writes(polyphase, tmp_path):
    def written(x):
        y = x * 2
        y.add_(1).relu_()
        return y + x

    x = torch.randn(3, 4)
    check(polyphase, tmp_path, export(Call(written), [x]), [x], written(x), names=["inputs_0"])

    def shared(x):
        y = x * 2
        view = y[0]
        y.add_(1)
        return view + 1

    torch.export.save(export(Call(shared), [x]), tmp_path / "shared.pt2")
    said = polyphase("check", tmp_path / "shared.pt2", expect=4).stdout
    assert "shares and is read later" in said
    program = export(Call(shared), [x]).run_decompositions({})
    check(polyphase, tmp_path, program, [x], shared(x), names=["inputs_0"])


class Flow(nn.Module):
    """Conditions and loops over a linear layer."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        if self.kind == "cond":
            return torch.cond(x.sum() > 0, lambda y: self.linear(y) * 2 + y.shape[0], lambda y: y - 1, (x,))
        if self.kind == "cond on sizes":
            return torch.cond(x.shape[0] > 4, lambda y: self.linear(y) * 2, lambda y: y - 1, (x,))
        if self.kind == "while":
            goes_on = lambda i, y: (i < 5) & (y.sum() < 100)  # noqa: E731
            return while_loop(goes_on, lambda i, y: (i + 1, self.linear(y) + y.abs()), (torch.tensor(0), x))
        if self.kind == "cond in while":
            step = lambda i, y: (i + 1, torch.cond(y.sum() > 0, lambda z: self.linear(z), lambda z: z + 1, (y,)))  # noqa: E731
            return while_loop(lambda i, y: i < 5, step, (torch.tensor(0), x))
        if self.kind == "scan":
            return scan(lambda c, y: (c * 0.5 + self.linear(y), c * y), torch.zeros(4), x)
        if self.kind == "map":
            return map_over(lambda y, w: self.linear(y) + w, x, torch.ones(4))
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            y = self.linear(x)
            return y.float(), torch.softmax(y, -1).float()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["cond", "cond on sizes", "while", "cond in while", "scan", "map", "autocast"])
def test_graphs_inside_nodes(polyphase, tmp_path, kind, form):
    torch.manual_seed(2)
    module = Flow(kind)
    tolerance = 1e-2 if kind == "autocast" else 1e-5
    for rows in (3, 33):  # short loops are unrolled
        values = torch.randn(rows, 4).abs()
        program = export(module, [values], {"x": {0: AUTO}} if form == "dynamic" else None, form == "decomposed")
        for x in (values, -values):  # the way to either branch
            with torch.no_grad():
                check(polyphase, tmp_path, program, [x], module(x), tolerance, names=["x"])


def test_writes_through_views(polyphase, tmp_path):
    def written(x, rows):
        y = x.clone()
        y[x > 0] = 1.5
        y[:, x[0] > 0] = y[:, :1] * 2
        y[1:, 2] = 7
        y[0].add_(1)
        y[:, ::2] = 0.5
        y.t()[0] = 9
        y.view(2, 6)[1].mul_(2)
        y.permute(1, 0)[1] = 4
        y[rows] = y[rows] + 1
        return y

    inputs = [torch.randn(3, 4), torch.tensor([2, 0])]
    for decomposed in (False, True):
        program = export(Call(written), inputs, None, decomposed)
        check(polyphase, tmp_path, program, inputs, written(*inputs), names=["inputs_0", "inputs_1"])

    def copied(x):
        y = (x * 2).t()
        y.contiguous().add_(1)  # of a copy: y stays
        return y

    x = torch.randn(3, 4)
    torch.export.save(export(Call(copied), [x]), tmp_path / "copied.pt2")
    said = polyphase("check", tmp_path / "copied.pt2", expect=4).stdout
    assert "and is read later" in said
    torch.export.save(export(Call(lambda x: x.add_(1) * 2), [x]), tmp_path / "input.pt2")
    said = polyphase("check", tmp_path / "input.pt2", expect=4).stdout
    assert "an input or a weight, in place" in said


def test_tied_and_normalised_weights(polyphase, tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(5, 5)
            self.second = nn.Linear(5, 5)
            self.second.weight = self.first.weight
            self.up = nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(5, 3, 4, 2, 1))
            self.old = nn.utils.weight_norm(nn.Conv1d(3, 2, 3))
            self.register_buffer("scale", torch.rand(2, 1), persistent=False)

        def forward(self, x):
            y = self.second(torch.tanh(self.first(x)))
            return self.old(self.up(y.transpose(1, 2))) * self.scale

    module, x = Tied(), torch.randn(2, 7, 5)
    check(polyphase, tmp_path, export(module, [x]), [x], module(x), 1e-5, names=["x"])
    graph = polyphase("compile", tmp_path / "model.pt2", "-o", tmp_path / "m.ppe", "--print-after", "all").stdout
    last = graph[graph.rindex("graph "):]
    assert "reduce_l2" not in last  # the norm became a weight


def saved(function, *inputs) -> bytes:
    file = io.BytesIO()
    torch.export.save(export(Call(function), list(inputs)), file)
    return file.getvalue()


def test_what_is_no_program_is_told_what_to_do(polyphase, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(nn.ReLU(), torch.ones(2)), tmp_path / "script.pt")
    torch.save({"weight": torch.ones(3)}, tmp_path / "state.pt")
    for name, words in (("script.pt", "this is a TorchScript archive"), ("state.pt", "such as a state_dict, but no network")):
        said = polyphase("compile", tmp_path / name, "-o", tmp_path / "x.ppe", expect=1).stderr
        assert words in said
        assert "torch.export.save(torch.export.export(module, inputs)" in said
    assert not (tmp_path / "x.ppe").exists()


def test_every_cut_and_many_flips_are_refused_or_right(polyphase, tmp_path):
    whole = saved(lambda x: F.conv_transpose2d(x, torch.ones(2, 3, 2, 2), stride=2), torch.randn(1, 2, 3, 3))
    path = tmp_path / "cut.pt2"
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        polyphase("check", path, expect=1)
    random = np.random.default_rng(1)
    for _ in range(60):
        broken = bytearray(whole)
        broken[random.integers(len(whole))] ^= 1 << random.integers(8)
        path.write_bytes(broken)
        done = subprocess.run([str(polyphase.path), "check", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 4), done.stderr


def test_complex_numbers_stay_inside(polyphase, tmp_path):
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("turns", torch.polar(torch.ones(2, 5), torch.arange(10.0).reshape(5, 2).T))

        def forward(self, x):
            return torch.view_as_real(torch.fft.rfft(x) * self.turns)

    x = torch.randn(2, 8)
    check(polyphase, tmp_path, export(Weighted(), [x]), [x], Weighted()(x), names=["x"])
    for forward, inputs in ((lambda x: torch.fft.fft(x), [x]), (lambda z: z.real + 1, [torch.complex(x, x)]), (lambda x: torch.fft.fft(x).tan().real, [x])):
        torch.export.save(export(Call(forward), inputs), tmp_path / "complex.pt2")
        said = polyphase("compile", tmp_path / "complex.pt2", "-o", tmp_path / "complex.ppe", expect=1).stderr
        assert "complex" in said and "torch.view_as_real" in said


def test_missing_operators_are_listed(polyphase, tmp_path):
    (tmp_path / "m.pt2").write_bytes(saved(lambda x: torch.linalg.inv(x) + torch.linalg.det(x), torch.eye(3)))
    said = polyphase("check", tmp_path / "m.pt2", expect=4).stdout
    assert "run_decompositions" in said
    said = polyphase("compile", tmp_path / "m.pt2", "-o", tmp_path / "m.ppe", expect=1).stderr
    assert "the program uses operators that Polyphase lacks: " in said
    assert "linalg" in said

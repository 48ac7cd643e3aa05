"""The Python package gives the numbers of NumPy, PyTorch and ONNX Runtime, in the shapes and kinds that were promised."""

from __future__ import annotations

import inspect
import pickle
import time

import numpy as np
import onnx
import onnxruntime
import polyphase
import pytest
import small_models
import torch

pytestmark = pytest.mark.usefixtures("up")  # whose file many tests read


def pixels(*sizes) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(sizes, dtype=np.float32)


def test_a_call_gives_what_numpy_gives(up):
    for sizes in ((1, 3, 4, 5), (2, 3, 7, 1), (1, 3, 1, 1)):
        x = pixels(*sizes)
        np.testing.assert_allclose(up(x), small_models.up_expected(x), atol=1e-6)


def test_a_network_gives_what_pytorch_and_onnx_runtime_give(folder):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(),
                              torch.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1, output_padding=1)).eval()
    x = torch.from_numpy(pixels(1, 3, 10, 12))
    torch.onnx.export(net, (x,), folder / "net.onnx", input_names=["x"], output_names=["y"], dynamo=False,
                      dynamic_axes={"x": {2: "H", 3: "W"}})
    engine = polyphase.compile(folder / "net.onnx")
    with torch.no_grad():
        expected = net(x)
    found = engine(x)
    assert isinstance(found, torch.Tensor) and found.shape == expected.shape
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    runtime = onnxruntime.InferenceSession(folder / "net.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(engine(x.numpy()), runtime.run(None, {"x": x.numpy()})[0], atol=1e-5)


def transposed_model(folder, deconv: torch.nn.ConvTranspose2d, shape: tuple) -> str:
    node = onnx.helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], strides=deconv.stride, dilations=deconv.dilation)
    weights = [(name, value.detach().numpy()) for name, value in (("w", deconv.weight), ("b", deconv.bias))]
    return small_models.save(folder / "strides.onnx", [node], [("x", onnx.TensorProto.FLOAT, shape)], [("y", onnx.TensorProto.FLOAT, None)], weights)


@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("stride", [(2_000_000_000, 1), (2_000_000_000, 2), (300, 300)])
def test_strides_that_no_loop_over_phases_survives(folder, stride, dilation):
    """An image one pixel high takes any stride; what plans per phase would be at it for minutes."""
    deconv = torch.nn.ConvTranspose2d(32, 32, 4, stride=stride, dilation=dilation).eval()
    x = torch.from_numpy(pixels(1, 32, 1, 2))
    start = time.perf_counter()
    engine = polyphase.compile(transposed_model(folder, deconv, tuple(x.shape)))
    found = engine(x)
    assert time.perf_counter() - start < 10
    with torch.no_grad():
        torch.testing.assert_close(found, deconv(x), atol=1e-4, rtol=1e-4)


def test_inputs_by_position_name_and_both(two):
    a, b = pixels(2, 4), pixels(2, 4) + 1
    for found in (two(a, b), two(a=a, b=b), two(b=b, a=a), two(a, b=b)):
        assert isinstance(found, tuple)
        np.testing.assert_array_equal(found[0], a + b)
        np.testing.assert_array_equal(found[1], a * b)


def test_the_kind_of_array_that_goes_in_comes_out(two):
    a, b = pixels(2, 4), pixels(2, 4)
    assert all(type(y) is np.ndarray for y in two(a, b))
    assert all(type(y) is torch.Tensor for y in two(torch.from_numpy(a), b))
    assert all(type(y) is np.ndarray for y in two(memoryview(a), b))


def test_session_runs_return_dicts_by_name(two):
    session = two.session(threads=2)
    assert session.threads == 2
    a, b = pixels(3, 4), pixels(3, 4)
    for found in (session.run({"b": b, "a": a}), session.run([a, b]), session.run((a, b))):
        assert list(found) == ["sum", "product"]
        np.testing.assert_array_equal(found["sum"], a + b)


def test_outputs_into_memory_of_the_caller(two):
    session = two.session(threads=1)
    a, b = pixels(3, 4), pixels(3, 4)
    shapes = session.output_shapes({"a": a.shape, "b": b.shape})
    assert shapes == {"sum": (3, 4), "product": (3, 4)} == session.output_shapes([a.shape, b.shape])
    memory = {name: np.full(shape, np.nan, np.float32) for name, shape in shapes.items()}
    found = session.run([a, b], outputs=memory)
    assert all(found[name] is memory[name] for name in memory)
    np.testing.assert_array_equal(memory["product"], a * b)
    tensors = [torch.zeros(3, 4), torch.zeros(3, 4)]
    assert session.run([a, b], outputs=tensors)["sum"] is tensors[0]
    np.testing.assert_array_equal(tensors[0].numpy(), a + b)


def test_sizes_born_from_data(folder):
    engine = polyphase.compile(small_models.sizes_from_data(folder / "born.onnx"))
    session = engine.session()
    assert session.output_shapes([(1, 4), (2,)]) == {"y": None}
    x = pixels(1, 4)
    np.testing.assert_allclose(engine(x, np.array([3, 4])), np.exp(np.broadcast_to(x, (3, 4))), rtol=1e-6)


def test_ports_and_info(up):
    x, y = up.inputs[0], up.outputs[0]
    assert (x.name, x.dtype, x.shape) == ("x", "float32", ("N", 3, "H", "W"))
    assert (y.name, y.dtype, y.shape) == ("y", "float32", ("N", 2, "2*H", "2*W"))
    assert repr(up) == "Engine((x: float32[N, 3, H, W]) -> (y: float32[N, 2, 2*H, 2*W]))"
    info = up.info()
    assert info["producer"] == f"polyphase {polyphase.version}" and set(info["dims"]) == {"N", "H", "W"}
    assert any("conv_transpose" in step["operation"] for step in info["steps"])
    report = up.session(1).explain({"x": (1, 3, 8, 8)})
    taken = [step["row"] for step in report["steps"] if step["row"]]
    assert taken and report["constant_bytes"] > 0
    assert all(row["taken"] or row["refusal"] or row["cost_seconds"] > 0 for step in report["steps"] for row in step["rows"])


def test_sessions_count_plans(up):
    session = up.session(1)
    for size in (4, 5, 4, 4):
        session.run([pixels(1, 3, size, size)])
    assert session.counters["plans"] == 2 and session.counters["plan_hits"] == 2


def test_an_engine_survives_files_bytes_and_pickle(up, folder):
    x = pixels(1, 3, 4, 5)
    up.save(folder / "up.ppe")
    assert (folder / "up.ppe").read_bytes() == up.to_bytes()
    for engine in (polyphase.load(folder / "up.ppe"), polyphase.load(str(folder / "up.ppe")), polyphase.load(up.to_bytes()),
                   polyphase.load(bytearray(up.to_bytes())), pickle.loads(pickle.dumps(up))):
        np.testing.assert_array_equal(engine(x), up(x))


def test_models_from_bytes_and_protobuf(up, folder):
    x = pixels(1, 3, 4, 5)
    data = (folder / "up.onnx").read_bytes()
    for model in (data, bytearray(data), memoryview(data), onnx.load(folder / "up.onnx")):
        np.testing.assert_array_equal(polyphase.compile(model)(x), up(x))


def test_external_data_beside_a_model_in_memory(folder):
    small_models.up(folder / "inside.onnx")
    model = onnx.load(folder / "inside.onnx")
    onnx.save(model, folder / "outside.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    data = (folder / "outside.onnx").read_bytes()
    with pytest.raises(polyphase.Error):
        polyphase.compile(data)
    x = pixels(1, 3, 2, 2)
    np.testing.assert_allclose(polyphase.compile(data, external_data=folder)(x), small_models.up_expected(x), atol=1e-6)


def test_compile_options(folder):
    path = folder / "up.onnx"
    fixed = polyphase.compile(path, shapes={"x": (1, 3, "H", "H")}, dims={"H": 6}, tune_for={"x": (1, 3, 6, 6)}, target="portable")
    assert fixed.inputs[0].shape == (1, 3, 6, 6) and fixed.info()["cluster"] == "portable"
    ranged = polyphase.compile(path, shapes={"x": "1x3xHxW"}, dims={"H": (2, 4)}, without=["fuse_endings"], target="scalar")
    assert ranged.info()["dims"]["H"] == {"low": 2, "high": 4} and ranged.info()["cluster"] == "scalar"
    with pytest.raises(polyphase.ArgumentError, match="axis 2"):
        ranged(pixels(1, 3, 5, 4))


def test_progress_is_told(folder):
    told = []
    polyphase.compile(folder / "up.onnx", progress=lambda stage, done: told.append((stage, done)))
    stages = [stage for stage, _ in told]
    assert stages[0] == "import" and stages[-1] == "done" and f"pass {polyphase.pass_names()[0]}" in stages
    shares = [done for _, done in told]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1


def test_check_and_compare_layers(folder):
    report = polyphase.check(folder / "up.onnx")
    assert report["ok"] and {operator["name"] for operator in report["operators"]} == {"ConvTranspose", "Relu"}
    x = pixels(1, 3, 4, 4)
    layers = polyphase.compare_layers(folder / "up.onnx", {"x": x}, keep_tensors=True)
    assert [layer["tensor"] for layer in layers["layers"]] == ["t", "y"] and layers["first_past"] == -1
    np.testing.assert_allclose(layers["found"]["y"], small_models.up_expected(x), atol=1e-6)
    wrong = {"t": layers["found"]["t"] + 1}
    assert polyphase.compare_layers(folder / "up.onnx", [x], golden=wrong)["first_past"] == 0


def test_devices():
    device = polyphase.devices()[0]
    assert device["cluster"] in ("scalar", "avx2", "avx512", "avx512_bf16", "amx") and device["cores"] >= 1 and device["memory_bytes"] > 2**20


def public_functions():
    for name in polyphase.__all__:
        public = getattr(polyphase, name)
        if inspect.isclass(public):
            yield name, public
            yield from ((f"{name}.{key}", value) for key, value in vars(public).items()
                        if (not key.startswith("_") or key == "__call__") and (callable(value) or isinstance(value, property)))
        elif callable(public):
            yield name, public


def test_every_public_name_is_documented():
    silent = [name for name, public in public_functions() if not (public.__doc__ or "").strip()]
    assert not silent
    raising = ("compile", "load", "check", "compare_layers", "Engine.__call__", "Engine.session", "Engine.save", "Engine.to_bytes",
               "Session.run", "Session.output_shapes", "Session.explain")
    documented = dict(public_functions())
    assert not [name for name in raising if "Raises" not in documented[name].__doc__]

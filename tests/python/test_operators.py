"""Operators that exporters and ONNX Runtime's optimiser write, many to a model: the numbers of NumPy, PyTorch, ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

EQUATIONS = {
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bhid,bhjd->bhij": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "bhij,bhjd->bihd": [(2, 3, 4, 6), (2, 3, 6, 5)],
    "ij": [(3, 4)],
    "ba": [(3, 4)],
    "ii": [(4, 4)],
    "ii->i": [(4, 4)],
    "iji->ji": [(3, 4, 3)],
    "...ii->...i": [(2, 3, 3)],
    "i,j->ij": [(3,), (4,)],
    "i,i": [(5,), (5,)],
    "ij,kl->": [(2, 3), (4, 5)],
    "...ij,...jk->...ik": [(2, 1, 3, 4), (5, 4, 2)],
    "b...,b...->...": [(2, 3, 4), (2, 3, 4)],
    "abc,cd,de->abe": [(2, 3, 4), (4, 5), (5, 2)],
    "ab,bc,ca->": [(2, 3), (3, 4), (4, 2)],
    "nchw,cm->nmhw": [(2, 3, 4, 5), (3, 6)],
    "bcf,cof->bof": [(2, 3, 4), (3, 5, 4)],
    " i j , j -> i ": [(3, 4), (4,)],
    "Ab,bA->A": [(3, 4), (4, 3)],
    "ab,cb->ac": [(3, 1), (4, 5)],
    "aab,bc->ac": [(3, 3, 2), (2, 4)],
}


def save(folder, nodes, inputs, outputs, opset=21):
    value = lambda name, array: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    loose = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "operators", [value(k, v) for k, v in inputs.items()], [loose(o) for o in outputs])
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains, ir_version=10)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def ours(polyphase, model, inputs, folder):
    polyphase("compile", model, "-o", folder / "model.ppe")
    return polyphase.run_arrays(folder / "model.ppe", inputs, folder)


def check(found, right, name, tolerance=2e-6):
    right = np.asarray(right)
    assert found.shape == right.shape, name
    np.testing.assert_allclose(found, right, rtol=0, atol=tolerance * max(1e-3, np.abs(right).max()), err_msg=name)


def test_einsum(polyphase, tmp_path):
    rng = np.random.default_rng(1)
    nodes, inputs, right = [], {}, {}
    for i, (equation, shapes) in enumerate(EQUATIONS.items()):
        names = [f"x{i}_{k}" for k in range(len(shapes))]
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        inputs |= dict(zip(names, arrays))
        nodes.append(helper.make_node("Einsum", names, [f"y{i}"], equation=equation))
        right[f"y{i}"] = (equation, np.einsum(equation.replace(" ", ""), *[a.astype(np.float64) for a in arrays]))
    found = ours(polyphase, save(tmp_path, nodes, inputs, list(right)), inputs, tmp_path)
    for name, (equation, expected) in right.items():
        check(found[name], expected, equation)


def test_grid_sample(polyphase, tmp_path):
    rng = np.random.default_rng(2)
    image = rng.standard_normal((2, 5, 7, 6)).astype(np.float32)
    volume = rng.standard_normal((1, 3, 4, 5, 6)).astype(np.float32)
    grid = rng.uniform(-2.5, 2.5, (2, 8, 9, 2)).astype(np.float32)
    places = rng.uniform(-2.5, 2.5, (1, 3, 4, 5, 3)).astype(np.float32)
    inputs = {"image": image, "volume": volume, "grid": grid, "places": places}
    nodes, right = [], {}
    torch_mode = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
    for x, g, modes in (("image", "grid", torch_mode), ("volume", "places", ("linear", "nearest"))):
        for mode in modes:
            for padding in ("zeros", "border", "reflection"):
                for corners in (0, 1):
                    name = f"{x}_{mode}_{padding}_{corners}"
                    settings = {"mode": mode, "padding_mode": padding, "align_corners": corners}
                    nodes.append(helper.make_node("GridSample", [x, g], [name], **settings))
                    tensors = [torch.from_numpy(inputs[k]).double() for k in (x, g)]
                    right[name] = torch.nn.functional.grid_sample(
                        *tensors, mode=torch_mode[mode], padding_mode=padding, align_corners=bool(corners)).numpy()
    found = ours(polyphase, save(tmp_path, nodes, inputs, list(right)), inputs, tmp_path)
    for name, expected in right.items():
        check(found[name], expected, name, 1e-5)


def test_fourier(polyphase, tmp_path):
    rng = np.random.default_rng(3)
    signal = rng.standard_normal((2, 1000, 1)).astype(np.float32)
    window = np.hanning(256).astype(np.float32)
    spectrum = rng.standard_normal((3, 129, 2)).astype(np.float32)
    inputs = {"signal": signal, "window": window, "spectrum": spectrum}
    constants = {"step": 64, "length": 256, "axis": 1}
    nodes = [helper.make_node("Constant", [], [k], value=helper.make_tensor(k, TensorProto.INT64, [], [v])) for k, v in constants.items()]
    nodes += [helper.make_node("STFT", ["signal", "step", "window"], ["stft"]),
              helper.make_node("DFT", ["signal", "", "axis"], ["dft"]),
              helper.make_node("DFT", ["spectrum", "length", "axis"], ["irfft"], inverse=1, onesided=1),
              helper.make_node("DFT", ["spectrum", "", "axis"], ["ifft"], inverse=1)]
    found = ours(polyphase, save(tmp_path, nodes, inputs, ["stft", "dft", "irfft", "ifft"]), inputs, tmp_path)
    complex_of = lambda a: a[..., 0].astype(np.float64) + 1j * a[..., 1]
    pairs = lambda a: np.stack([a.real, a.imag], -1)
    wide = signal[..., 0].astype(np.float64)
    frames = np.stack([wide[:, f * 64 : f * 64 + 256] * window for f in range(1 + (1000 - 256) // 64)], 1)
    check(found["stft"], pairs(np.fft.rfft(frames)), "stft", 3e-7)
    check(found["dft"], pairs(np.fft.fft(wide)), "dft", 3e-7)
    check(found["irfft"], np.fft.irfft(complex_of(spectrum), 256, axis=1)[..., None], "irfft", 3e-7)
    check(found["ifft"], pairs(np.fft.ifft(complex_of(spectrum), axis=1)), "ifft", 3e-7)


def microsoft_nodes(rng):
    f = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    x = {"x": f(2, 5, 16), "skip": f(2, 5, 16), "gamma": f(16), "beta": f(16), "bias": f(16), "w": f(16, 48), "b": f(48),
         "q": f(2, 5, 16), "k": f(2, 7, 16), "v": f(2, 7, 16), "past": f(2, 2, 4, 3, 4), "relative": f(1, 4, 5, 7),
         "mask": np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32), "a3": f(3, 4, 5), "b3": f(3, 5, 6), "at": f(4, 3, 5),
         "m": f(6, 4), "n": f(5, 6), "c": f(5), "image": f(1, 3, 8, 8), "kernel": f(4, 3, 3, 3), "kb": f(4), "z": f(1, 4, 8, 8),
         "rx": f(2, 4, 6, 8), "cos": f(10, 4), "sin": f(10, 4), "pos": np.array([[0, 1, 2, 3, 4, 5]] * 2, np.int64),
         "ids": rng.integers(0, 9, (2, 5)).astype(np.int32), "segments": rng.integers(0, 2, (2, 5)).astype(np.int32),
         "words": f(9, 16), "places": f(5, 16), "types": f(2, 16)}
    ms = lambda op, inputs, outputs, **settings: helper.make_node(op, inputs, outputs, domain="com.microsoft", **settings)
    nodes = [
        ms("BiasGelu", ["x", "bias"], ["bias_gelu"]), ms("FastGelu", ["x", "bias"], ["fast_gelu"]), ms("Gelu", ["x"], ["gelu"]),
        ms("QuickGelu", ["x"], ["quick_gelu"], alpha=1.5),
        ms("SkipLayerNormalization", ["x", "skip", "gamma", "beta", "bias"], ["skip_norm", "", "", "skip_sum"], epsilon=1e-5),
        ms("SkipSimplifiedLayerNormalization", ["x", "skip", "gamma"], ["skip_simple"], epsilon=1e-5),
        helper.make_node("SimplifiedLayerNormalization", ["x", "gamma"], ["simple"], epsilon=1e-5, axis=-1),
        ms("EmbedLayerNormalization", ["ids", "segments", "words", "places", "types", "gamma", "beta"], ["embed", "counts"]),
        ms("Attention", ["x", "w", "b"], ["attention"], num_heads=4), ms("Attention", ["x", "w", "b"], ["causal"], num_heads=4, unidirectional=1),
        ms("MultiHeadAttention", ["q", "k", "v", "b", "mask", "relative"], ["heads"], num_heads=4),
        ms("MultiHeadAttention", ["q", "k", "v"], ["plain_heads"], num_heads=4, scale=0.3),
        ms("FusedMatMul", ["a3", "b3"], ["matmul"], alpha=0.5), ms("FusedMatMul", ["at", "b3"], ["batches"], transBatchA=1),
        ms("FusedGemm", ["m", "n", "c"], ["gemm"], transA=1, transB=1, alpha=0.5, activation="LeakyRelu", activation_alpha=0.1),
        ms("FusedConv", ["image", "kernel", "kb", "z"], ["conv"], activation="Relu", pads=[1, 1, 1, 1]),
        ms("RotaryEmbedding", ["rx", "pos", "cos", "sin"], ["rotary"]),
        ms("RotaryEmbedding", ["rx", "pos", "cos", "sin"], ["interleaved"], interleaved=1)]
    return nodes, x


def test_what_onnx_runtimes_optimiser_writes(polyphase, tmp_path):
    nodes, inputs = microsoft_nodes(np.random.default_rng(4))
    outputs = [o for node in nodes for o in node.output if o and o != "counts"]
    used = {name for node in nodes for name in node.input}
    inputs = {k: v for k, v in inputs.items() if k in used}
    model = save(tmp_path, nodes, inputs, outputs)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    right = dict(zip(outputs, session.run(outputs, inputs)))
    found = ours(polyphase, model, inputs, tmp_path)
    for name in outputs:
        check(found[name], right[name], name, 5e-6)


def test_group_norm_with_channels_last(polyphase, tmp_path):
    rng = np.random.default_rng(5)
    x, skip = rng.standard_normal((2, 4, 3, 8)).astype(np.float32), rng.standard_normal((2, 8)).astype(np.float32)
    gamma, beta = rng.standard_normal((2, 8)).astype(np.float32)
    nodes = [helper.make_node("GroupNorm", ["x", "gamma", "beta"], ["plain"], domain="com.microsoft", groups=4, activation=1),
             helper.make_node("SkipGroupNorm", ["x", "gamma", "beta", "skip"], ["skipped", "sum"], domain="com.microsoft", groups=2, activation=0),
             helper.make_node("BiasSplitGelu", ["x", "gamma"], ["split"], domain="com.microsoft"),
             helper.make_node("BiasAdd", ["x", "gamma", "x"], ["added"], domain="com.microsoft")]
    inputs = {"x": x, "gamma": gamma, "beta": beta, "skip": skip}
    found = ours(polyphase, save(tmp_path, nodes, inputs, ["plain", "skipped", "sum", "split", "added"]), inputs, tmp_path)
    g, b = torch.from_numpy(gamma).double(), torch.from_numpy(beta).double()
    norm = lambda a, groups: torch.nn.functional.group_norm(torch.from_numpy(a).double().permute(0, 3, 1, 2), groups, g, b).permute(0, 2, 3, 1)
    check(found["plain"], torch.nn.functional.silu(norm(x, 4)).numpy(), "plain")
    check(found["sum"], x + skip[:, None, None, :], "sum")
    check(found["skipped"], norm(x + skip[:, None, None, :], 2).numpy(), "skipped")
    total = torch.from_numpy(x + gamma).double()
    check(found["split"], (total[..., :4] * torch.nn.functional.gelu(total[..., 4:])).numpy(), "split")
    check(found["added"], x + gamma + x, "added")


@pytest.mark.parametrize("equation, words", [
    ("ij,jk->iz", "the result has the label 'z', which no operand has"),
    ("ij->ij", "the equation has 1 terms for 2 operands"),
    ("ijk,jk->i", "the term 'ijk' does not fit operand 0"),
    ("i.j,jk->ik", "a term may have letters and one '...'"),
    ("ij,jk->ii", "the result has the label 'i' twice"),
    ("ij,ik->jk", "the axes of 'i' must be equal or 1, found 2 and 3"),
])
def test_einsum_refuses(equation, words, polyphase, tmp_path):
    inputs = {"a": np.zeros((2, 3), np.float32), "b": np.zeros((3, 4), np.float32)}
    model = save(tmp_path, [helper.make_node("Einsum", ["a", "b"], ["y"], equation=equation)], inputs, ["y"])
    assert words in polyphase("compile", model, "-o", tmp_path / "model.ppe", expect=1).stderr

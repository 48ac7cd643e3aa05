"""examples/upfirdn2d, an operator of a plugin, against PyTorch: in ONNX models, exported programs, networks and engines, with sizes that
are known and sizes that are not; from the command line and from Python."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import numpy as np
import onnx
import pytest
import torch
import upfirdn2d
from conftest import find_build
from onnx import TensorProto, helper

BLUR = np.outer([1, 3, 3, 1], [1, 3, 3, 1]).astype(np.float32) / 64


@pytest.fixture(scope="module")
def plugin():
    return upfirdn2d.library()


def model(path, sizes, *, filter=None, constant=True, domain="stylegan", **attributes):
    """relu(x), the operator, + 1: something before and behind it that would be fused if it could be."""
    filter_name = "" if filter is None else "f"
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="before"),
             helper.make_node("UpFirDn2d", ["r", filter_name] if filter_name else ["r"], ["u"], name="up", domain=domain, **attributes),
             helper.make_node("Add", ["u", "one"], ["y"], name="behind")]
    constants = [helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)]
    if filter is not None and constant:
        constants.append(onnx.numpy_helper.from_array(filter, "f"))
    elif filter is not None:
        inputs.append(helper.make_tensor_value_info("f", TensorProto.FLOAT, ["A", "B"] if filter.ndim == 2 else ["A"]))
    graph = helper.make_graph(nodes, "upfirdn", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]), path)
    return path


def expected(x, f, **settings):
    settings = {name: [value] if name != "gain" and np.isscalar(value) else value for name, value in settings.items()}
    if "flip_filter" in settings:
        settings["flip_filter"] = bool(settings["flip_filter"][0])
    return upfirdn2d.reference(torch.from_numpy(x).relu(), None if f is None else torch.from_numpy(f), **settings).numpy() + 1


def pixels(*sizes, seed=0):
    return np.random.default_rng(seed).standard_normal(sizes).astype(np.float32)


# What StyleGAN asks for (up by 2, down by 2, blur), and crops, uneven numbers and a filter of one axis.
GEOMETRIES = [
    dict(up=[2, 2], padding=[2, 1, 2, 1], gain=4.0),
    dict(down=[2, 2], padding=[1, 1, 1, 1]),
    dict(padding=[2, 1, 2, 1], flip_filter=1),
    dict(up=[2], down=[3], padding=[0, 5, -1, 4]),
    dict(up=[3, 1], down=[1, 2], padding=[-2, 3, 4, -1], gain=0.5),
    dict(up=[4], padding=[-3]),
]


@pytest.mark.parametrize("case", GEOMETRIES, ids=str)
@pytest.mark.parametrize("sizes", [[2, 3, 9, 11], ["N", "C", "H", "W"]], ids=["fixed", "open"])
def test_an_onnx_model_gives_pytorchs_numbers(polyphase, plugin, tmp_path, case, sizes):
    path = model(tmp_path / "m.onnx", sizes, filter=BLUR, **case)
    polyphase("compile", path, "-o", tmp_path / "m.ppe", "--plugin", plugin)
    for shape in [(2, 3, 9, 11)] if sizes[0] != "N" else [(1, 1, 8, 8), (2, 3, 9, 11), (1, 4, 17, 6)]:
        x = pixels(*shape)
        for what in (path, tmp_path / "m.ppe"):
            found = polyphase.run_arrays(what, {"x": x}, tmp_path, "--plugin", plugin)["y"]
            np.testing.assert_allclose(found, expected(x, BLUR, **case), atol=1e-5, rtol=1e-5)


def test_random_geometries_static_and_open(plugin):
    import polyphase

    draw = random.Random(20)
    for trial in range(40):
        rows, columns = draw.randint(1, 5), draw.randint(1, 5)
        f = pixels(rows, columns, seed=trial)
        case = dict(up=[draw.randint(1, 4), draw.randint(1, 4)], down=[draw.randint(1, 4), draw.randint(1, 4)],
                    padding=[draw.randint(-2, 5) for _ in range(4)], flip_filter=draw.randint(0, 1), gain=draw.choice([1.0, 2.0]))
        height, width = draw.randint(6, 12), draw.randint(6, 12)
        x = pixels(1, 2, height, width, seed=trial)
        for sizes in ([1, 2, height, width], [1, 2, "H", "W"]):
            with polyphase.Network(plugins=[plugin]) as net:
                given = net.add_input("x", "float32", sizes)
                net.mark_output(net.add_plugin("stylegan.upfirdn2d", [given, f], case | {"flip_filter": bool(case["flip_filter"])})[0], "y")
            [y] = [net.compile(target="portable")(x)]
            settings = case | {"flip_filter": bool(case["flip_filter"])}
            np.testing.assert_allclose(y, upfirdn2d.reference(torch.from_numpy(x), torch.from_numpy(f), **settings).numpy(), atol=1e-5, rtol=1e-5, err_msg=str(case))


def test_optional_and_computed_operands(plugin, tmp_path):
    import polyphase

    x = pixels(1, 2, 7, 8)
    engine = polyphase.compile(model(tmp_path / "none.onnx", ["N", 2, "H", "W"], up=[2]), plugins=[plugin])
    np.testing.assert_allclose(engine(x), expected(x, None, up=2), atol=1e-6)
    f = pixels(3, 4, seed=1)
    engine = polyphase.compile(model(tmp_path / "given.onnx", ["N", 2, "H", "W"], filter=f, constant=False, up=[2]), plugins=[plugin])
    assert engine.outputs[0].shape == ("N", 2, "-A + 2*H + 1", "-B + 2*W + 1")
    for taps in (f, pixels(5, 2, seed=2)):
        np.testing.assert_allclose(engine(x, taps), expected(x, taps, up=2), atol=1e-5)
    one_axis = pixels(3, seed=3)
    engine = polyphase.compile(model(tmp_path / "line.onnx", [1, 2, 7, 8], filter=one_axis, up=[2]), plugins=[plugin])
    np.testing.assert_allclose(engine(x), expected(x, one_axis, up=2), atol=1e-5)


def test_the_filter_that_is_too_large_is_refused_with_its_node(plugin, tmp_path):
    import polyphase

    with pytest.raises(polyphase.Error, match="upfirdn2d needs an image that, upsampled and padded, is at least as large as the filter") as caught:
        polyphase.compile(model(tmp_path / "m.onnx", [1, 1, 2, 9], filter=BLUR), plugins=[plugin])
    assert caught.value.node == "up"
    engine = polyphase.compile(model(tmp_path / "open.onnx", [1, 1, "H", "W"], filter=BLUR), plugins=[plugin])
    assert engine(pixels(1, 1, 4, 4)).shape == (1, 1, 1, 1)
    with pytest.raises(polyphase.Error, match=r"axis 3 \(W\) must lie in 4\.\."):
        engine(pixels(1, 1, 4, 3))


def test_attributes_that_the_plugin_does_not_know_or_takes_otherwise(plugin, tmp_path):
    import polyphase

    with pytest.raises(polyphase.Error, match="'blur'") as caught:
        polyphase.compile(model(tmp_path / "m.onnx", [1, 1, 9, 9], filter=BLUR, blur=1), plugins=[plugin])
    assert caught.value.node == "up"
    with pytest.raises(polyphase.Error, match="attribute 'up' has the type FLOATS; it must be INTS"):
        polyphase.compile(model(tmp_path / "m.onnx", [1, 1, 9, 9], filter=BLUR, up=[1.5]), plugins=[plugin])
    with pytest.raises(polyphase.Error, match="up and down must be 1 or 2 numbers of 1 to 1024"):
        polyphase.compile(model(tmp_path / "m.onnx", [1, 1, 9, 9], filter=BLUR, up=[0]), plugins=[plugin])


# ---------------------------------------------------------------- PyTorch


class Synthesis(torch.nn.Module):
    """A block as StyleGAN has it: a convolution, blurred and up-sampled."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.register_buffer("filter", torch.from_numpy(BLUR))

    def forward(self, x):
        y = torch.nn.functional.leaky_relu(self.conv(x), 0.2)
        return torch.tanh(upfirdn2d.torch_operator()(y, self.filter, [2, 2], [1, 1], [2, 1, 2, 1], gain=4.0))


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_exported_program_with_the_operator(polyphase, plugin, tmp_path, dynamic):
    net, x = Synthesis().eval(), torch.randn(1, 3, 12, 10)
    shapes = {"x": {2: torch.export.Dim("H", min=4, max=64), 3: torch.export.Dim("W", min=4, max=64)}} if dynamic else None
    torch.export.save(torch.export.export(net, (x,), dynamic_shapes=shapes), tmp_path / "net.pt2")
    for given in [x, torch.randn(1, 3, 7, 33)] if dynamic else [x]:
        found = polyphase.run_arrays(tmp_path / "net.pt2", {"x": given.numpy()}, tmp_path, "--plugin", plugin)["output_0"]
        np.testing.assert_allclose(found, net(given).detach().numpy(), atol=1e-5)
    assert "stylegan.upfirdn2d.default" in polyphase("compile", tmp_path / "net.pt2", "-o", tmp_path / "no.ppe", expect=1).stderr


def test_a_module_compiles_with_it_and_an_absent_filter(plugin):
    import polyphase

    class Plain(torch.nn.Module):
        def forward(self, x):
            return upfirdn2d.torch_operator()(x, None, [3], [2], [1], False, 2.0)

    x = torch.randn(2, 3, 6, 7)
    engine = polyphase.compile(Plain(), (x,), plugins=[plugin])
    np.testing.assert_allclose(engine(x).numpy(), Plain()(x).numpy(), atol=1e-6)


# ---------------------------------------------------------------- engines, tools


def test_an_engine_says_which_plugin_it_needs(polyphase, plugin, tmp_path):
    path = model(tmp_path / "m.onnx", [1, 2, 9, 9], filter=BLUR)
    polyphase("compile", path, "-o", tmp_path / "m.ppe", "--plugin", plugin)
    said = polyphase("run", tmp_path / "m.ppe", expect=1).stderr
    assert "the engine needs operator 'stylegan.upfirdn2d', version 1, of the plugin 'stylegan'; none is given." in said
    assert "--plugin FILE" in said
    assert json.loads(polyphase("inspect", tmp_path / "m.ppe", "--json", "--plugin", plugin).stdout)["plugins"] == [{"name": "stylegan.upfirdn2d", "version": 1}]
    newer = upfirdn2d.SOURCE.read_text().replace(".version = 1", ".version = 2")
    (tmp_path / "newer.c").write_text(newer)
    second = upfirdn2d.build(tmp_path / "newer.c", tmp_path / "newer.so")
    said = polyphase("run", tmp_path / "m.ppe", "--plugin", second, expect=1).stderr
    assert "version 1, of the plugin 'stylegan'; the plugin given has version 2." in said


def test_the_tools_take_the_plugin(polyphase, plugin, tmp_path):
    path = model(tmp_path / "m.onnx", [1, 2, 9, 9], filter=BLUR)
    assert "stylegan.UpFirDn2d" in polyphase("check", path, expect=4).stdout
    polyphase("check", path, "--plugin", plugin)
    told = polyphase("explain", path, "--plugin", plugin).stdout
    assert "stylegan.upfirdn2d" in told and "plugin" in told
    polyphase("compat", path, "--plugin", plugin)
    polyphase("compare", path, "--layers", "--plugin", plugin)
    import polyphase as package

    assert package.check(path, plugins=[plugin])["ok"] and not package.check(path)["ok"]


def test_no_file_has_a_library_loaded(polyphase, plugin, tmp_path, monkeypatch):
    """Neither a name in the model nor a library beside it does."""
    path = model(tmp_path / "m.onnx", [1, 2, 9, 9], filter=BLUR)
    for name in ("stylegan.so", "upfirdn2d.so", "libstylegan.so"):
        shutil.copy(plugin, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert "UpFirDn2d" in polyphase("compile", path, "-o", tmp_path / "m.ppe", expect=1).stderr
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert "there is no plugin file 'nowhere.so'" in polyphase("compile", path, "-o", tmp_path / "m.ppe", "--plugin", "nowhere.so", expect=1).stderr
    polyphase("compile", path, "-o", tmp_path / "m.ppe", "--plugin", "upfirdn2d.so")


def test_what_polyphase_converts_is_not_for_plugins(polyphase, tmp_path):
    source = upfirdn2d.SOURCE.read_text()
    path = model(tmp_path / "m.onnx", [1, 2, 9, 9], filter=BLUR)
    for old, new, claim in [('{"stylegan", "UpFirDn2d"}', '{"ai.onnx", "Relu"}', "onnx  Relu"), ('"stylegan::upfirdn2d.default"', '"aten::relu"', "torch aten.relu.default"),
                            ('{"stylegan", "UpFirDn2d"}', '{"", "If"}', "onnx  If")]:
        (tmp_path / "claims.c").write_text(source.replace(old, new))
        library = upfirdn2d.build(tmp_path / "claims.c", tmp_path / "claims.so")
        said = polyphase("compile", path, "-o", tmp_path / "m.ppe", "--plugin", library, expect=1).stderr
        assert f"the plugin's operator 'stylegan.upfirdn2d' claims the nodes '{claim}', which Polyphase converts itself." in said


def test_engines_of_python_go_through_files_and_bytes(plugin, tmp_path):
    import polyphase

    path = model(tmp_path / "m.onnx", [1, "C", "H", "W"], filter=BLUR, up=[2])
    engine = polyphase.compile(path, plugins=[plugin])
    x = pixels(1, 3, 8, 9)
    expected_y = expected(x, BLUR, up=2)
    engine.save(tmp_path / "m.ppe")
    for loaded in (polyphase.load(tmp_path / "m.ppe", plugins=[plugin]), polyphase.load(engine.to_bytes(), [str(plugin)])):
        np.testing.assert_allclose(loaded.session(threads=3).run([x])["y"], expected_y, atol=1e-5)
        assert loaded.info()["plugins"] == [{"name": "stylegan.upfirdn2d", "version": 1}]
    for wrong in (str(plugin), [3]):
        with pytest.raises(polyphase.Error, match="plugins is"):
            polyphase.load(tmp_path / "m.ppe", plugins=wrong)
    with pytest.raises(polyphase.Error, match="none is given"):
        polyphase.load(tmp_path / "m.ppe")


IN_C = r"""
#include <stdio.h>
#include <string.h>

#include "polyphase/c_api.h"

int main(int argc, char** argv) {
  const char* model = argv[1];
  const char* plugins[] = {argv[2]};
  const char* missing[] = {"nowhere.so"};
  polyphase_compile_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.plugins = plugins;
  options.plugin_count = 1;
  polyphase_engine *engine, *again;
  polyphase_error* error = NULL;
  void* bytes;
  size_t size;
  if (argc != 4 || polyphase_compile(model, &options, &engine, &error) != POLYPHASE_OK) return 1;
  if (polyphase_engine_save(engine, argv[3], &error) != POLYPHASE_OK) return 2;
  if (polyphase_engine_to_bytes(engine, &bytes, &size, &error) != POLYPHASE_OK) return 3;
  if (polyphase_engine_load_with(argv[3], 1, plugins, &again, &error) != POLYPHASE_OK) return 4;
  polyphase_engine_free(again);
  if (polyphase_engine_from_bytes_with(bytes, size, 1, plugins, &again, &error) != POLYPHASE_OK) return 5;
  polyphase_engine_free(again);
  if (polyphase_engine_load(argv[3], &again, &error) != POLYPHASE_INCOMPATIBLE) return 6;
  printf("%s\n", polyphase_error_message(error));
  polyphase_error_free(error);
  if (polyphase_engine_load_with(argv[3], 1, missing, &again, &error) != POLYPHASE_IO) return 7;
  printf("%s\n", polyphase_error_message(error));
  polyphase_error_free(error);
  if (polyphase_engine_from_bytes_with(bytes, size, 1, NULL, &again, NULL) != POLYPHASE_INVALID_ARGUMENT) return 8;
  polyphase_bytes_free(bytes);
  polyphase_engine_free(engine);
  return 0;
}
"""


def test_the_c_api_takes_plugins(plugin, tmp_path):
    libraries = find_build() / "lib"
    assert (libraries / "libpolyphase.so").exists(), "build it whole, without sanitizers"
    (tmp_path / "main.c").write_text(IN_C)
    subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{upfirdn2d.ROOT / 'include'}", str(tmp_path / "main.c"), "-o", str(tmp_path / "main"),
                    f"-L{libraries.resolve()}", "-lpolyphase", f"-Wl,-rpath,{libraries.resolve()}"], check=True)
    path = model(tmp_path / "m.onnx", [1, 2, "H", "W"], filter=BLUR)
    done = subprocess.run([str(tmp_path / "main"), str(path), str(plugin), str(tmp_path / "m.ppe")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == ["the engine needs operator 'stylegan.upfirdn2d', version 1, of the plugin 'stylegan'; none is given.",
                                        "there is no plugin file 'nowhere.so'."]


def test_a_plugin_inside_of_a_branch(plugin, tmp_path):
    import polyphase

    then = helper.make_graph([helper.make_node("UpFirDn2d", ["x"], ["a"], name="inner", domain="stylegan", up=[2])], "then", [], [helper.make_tensor_value_info("a", TensorProto.FLOAT, None)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "else", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "H", "W"]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("stylegan", 1)]), tmp_path / "if.onnx")
    engine = polyphase.compile(tmp_path / "if.onnx", plugins=[plugin])
    x = pixels(1, 1, 4, 5)
    np.testing.assert_allclose(engine(x, np.array(True)), upfirdn2d.reference(torch.from_numpy(x), None, up=[2]).numpy(), atol=1e-6)
    np.testing.assert_array_equal(engine(x, np.array(False)), -x)


def test_a_network_with_a_plugin_is_not_run_in_tiles(polyphase, plugin, tmp_path):
    """Nobody knows how far its operators read: it is refused by the node's name, and sizes that do not reach the plugin can still be cut."""
    path = model(tmp_path / "m.onnx", [1, "C", "H", "W"], filter=BLUR, up=[2], padding=[2, 1], gain=4.0)
    np.save(tmp_path / "x.npy", pixels(1, 3, 32, 32))
    said = polyphase("run", path, "--plugin", plugin, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--tile", "16", expect=1).stderr
    assert "node 'up': the network cannot be run in tiles along H: stylegan.upfirdn2d is a plugin's operator, and those do not say how far they read." in said
    assert not (tmp_path / "y.npy").exists()
    polyphase("compile", path, "-o", tmp_path / "m.ppe", "--plugin", plugin)
    said = polyphase("run", tmp_path / "m.ppe", "--plugin", plugin, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--tile", "auto", expect=1).stderr
    assert "those do not say how far they read" in said

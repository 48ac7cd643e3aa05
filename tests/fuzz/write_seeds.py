"""Writes tests/fuzz/seeds: small files to begin from, one of each kind that a reader knows.

    write_seeds.py POLYPHASE          the program polyphase makes the engines
"""
import io
import pathlib
import struct
import subprocess
import sys
import tempfile
import wave
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEEDS = pathlib.Path(__file__).parent / "seeds"
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
from hostile import CASES, containers, parts  # noqa: E402
import small_models  # noqa: E402

LARGEST = 2000  # bytes


def write(target: str, name: str, content: bytes) -> None:
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def legal_models() -> dict[str, onnx.ModelProto]:
    """Between them every way in which a model's bytes differ: kinds of data, attributes, functions, graphs in graphs."""
    node, weight, info, model = parts.node, parts.weight, parts.info, parts.model
    then = helper.make_graph([node("Relu", "x", "b")], "then", [], [info("b", None)])
    other = helper.make_graph([node("Neg", "x", "b")], "else", [], [info("b", None)])
    leaky = helper.make_function("f", "F", ["a"], ["b"], [node("LeakyRelu", "a", "b", alpha=0.25)], [helper.make_opsetid("", 17)])
    shape = numpy_helper.from_array(np.array([0, -1], np.int64), "s")
    condition = weight("c", dtype=np.bool_)
    return {
        "deconvolution": parts.deconv(strides=[2, 2], pads=[1, 0, 1, 0], output_padding=[1, 0], bias=(3,)),
        "deconvolution_3d": parts.deconv(w=(2, 1, 2, 2, 2), x=("N", 2, "D", "H", "W"), strides=[2, 2, 2], group=2),
        "same_upper": parts.deconv(strides=[2, 2], auto_pad="SAME_UPPER"),
        "output_shape": parts.deconv(strides=[2, 2], output_shape=[10, 10]),
        "convolution": model([node("Conv", "x,w", dilations=[2, 1])], [weight("w", 3, 2, 2, 2)]),
        "branch": model([node("If", "c", then_branch=then, else_branch=other)], [condition]),
        "branch_on_input": model([node("If", "c", then_branch=then, else_branch=other)], inputs=[info("x"), info("c", (), TensorProto.BOOL)]),
        "function": model([node("F", domain="f")], functions=[leaky], domains=["f"]),
        "reshape": model([node("Shape", "x", "d"), node("Gather", "d,i", "e"), node("Reshape", "x,s")], [shape, numpy_helper.from_array(np.int64(1), "i")],
                         [info("x", ("N", "C", 3))]),
        "resize": model([node("Resize", "x,,k", mode="cubic", coordinate_transformation_mode="align_corners")],
                        [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "k")]),
        "sparse": containers.sparse([1.0, 2.0], [1, 3], (5,)),
        "half": model([node("Cast", "x", "h", to=TensorProto.FLOAT16), node("Add", "h,w")], [weight("w", 5, dtype=np.float16)]),
        "slice": model([node("Slice", "x,a,b"), node("Pad", "y,p", "z")],
                       [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in (("a", [1]), ("b", [-1]), ("p", [0, 0, 1, 1, 0, 0, 1, 1]))], [info("x", ("N", 2, "H", 4))],
                       [info("z", None)]),
        "norms": model([node("InstanceNormalization", "x,w,w", "a"), node("Softmax", "a", "b", axis=1), node("MaxPool", "b", kernel_shape=[2, 2])], [weight("w", 2)]),
    }


def models() -> None:
    for name, made in legal_models().items():
        write("onnx_model", name, made.SerializeToString())
    for name in ("deconv_stride_zero", "deconv_group_huge", "functions_call_each_other", "raw_data_short", "tile_huge", "if_without_else", "cycle"):
        write("onnx_model", name, CASES[name]().SerializeToString())


def batch_norm() -> onnx.ModelProto:
    """Folded, in an engine that takes other weights."""
    node, weight = parts.node, parts.weight
    statistics = [numpy_helper.from_array(np.ones(2, np.float32), name) for name in "smv"]
    return parts.model([node("ConvTranspose", "x,w", "c", strides=[2, 2]), node("BatchNormalization", "c,s,m,m,v")], [weight("w", 1, 2, 2, 2), *statistics],
                                [parts.info("x", (1, 1, 2, 2))])


def engines(program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        found = {"sizes_from_data": small_models.sizes_from_data(path / "sizes.onnx"), "up": small_models.up(path / "up.onnx"), "two": small_models.two(path / "two.onnx")}
        for name in ("branch_on_input", "norms", "half"):
            found[name] = path / f"{name}.onnx"
            onnx.save(legal_models()[name], found[name])
        found["recipes"] = path / "recipes.onnx"
        onnx.save(batch_norm(), found["recipes"])
        for name, model in found.items():
            options = ["--refittable", "--target", "scalar"] if name == "recipes" else ["--target", "portable"]
            subprocess.run([program, "compile", model, "-o", path / "e.ppe", *options], check=True, stdout=subprocess.DEVNULL)
            write("engine_file", name, (path / "e.ppe").read_bytes())


def programs() -> None:
    """The JSON of programs, without its metadata; the pickle of weights; one whole archive."""
    import json
    import zipfile

    import deform_conv
    import torch
    from torch import nn
    from torch._higher_order_ops.scan import scan
    from torch._higher_order_ops.while_loop import while_loop

    class Call(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x, y):
            return self.function(x, y)

    auto = torch.export.Dim.AUTO
    x, y = torch.ones(1, 2, 3, 4), torch.ones(2, 2, 3, 3)
    functions = {
        "up": lambda x, y: nn.functional.conv_transpose2d(x, y, stride=2, padding=1, output_padding=x.shape[2] % 2),
        "view": lambda x, y: (x.view(x.shape[0] * 2, -1).sum(1) * y.reshape(-1, 3)[:1].t().expand(3, x.shape[0] * 2), x[..., 1:-1]),
        "data": lambda x, y: (x[x > 0] * y.sum().item(), y.nonzero()),
        "cond": lambda x, y: torch.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, (x,)),
        "while": lambda x, y: while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 2), (torch.tensor(0), x))[1] + y[0, 0, 0, 0],
        "scan": lambda x, y: scan(lambda c, a: (c + a, c * a), torch.zeros(2, 3, 4), x)[1] + y[0, 0, 0, 0],
        "write": lambda x, y: x.clone()[0].t().mul_(2) if x.dim() == 3 else x.clone().index_put_((torch.tensor([0]),), y[0, 0, 0, 0]),
        "strided": lambda x, y: (x[0].transpose(0, 1).as_strided((2, x.shape[2], 3), (2, 4, 1), 1), torch.as_strided_scatter(y, y[0, 0], (3, 3), (9, 3), 2)),
        "bags": lambda x, y: nn.functional.embedding_bag(y.nonzero().flatten(), x.flatten(0, 2), torch.tensor([0, 2]), mode="max", padding_idx=1),
        "deform": lambda x, y: deform_conv.deform_conv2d(y[:, :, :2, :2] * x[0, 0, 0, 0], torch.cat([y[:, :1, :2, :2]] * 4, 1).repeat(1, 2, 1, 1), y[:, :, :2, :2], padding=(1, 1), stride=(2, 2)),
        "order": lambda x, y: (*x.cummax(3), x.logcumsumexp(2), torch.pdist(x[0, 0], 3.0), y.argsort(3)),
    }
    for name, function in functions.items():
        program = torch.export.export(Call(function), (x, y), dynamic_shapes={"x": {0: auto, 2: auto}, "y": None})
        file = io.BytesIO()
        torch.export.save(program, file)
        with zipfile.ZipFile(file) as archive:
            [path] = [member for member in archive.namelist() if "/models/" in member]
            made = json.loads(archive.read(path))

        def stripped(value):
            if isinstance(value, dict):
                dropped = ("requires_grad", "device", "hint", "is_hop_single_tensor_return", "custom_obj_values", "verifiers", "opset_version", "treespec_namedtuple_fields")
                return {k: {} if k == "metadata" else stripped(v) for k, v in value.items() if k not in dropped}
            return [stripped(v) for v in value] if isinstance(value, list) else value

        write("torch_program", name, b"J" + json.dumps(stripped(made), separators=(",", ":")).encode())
    weights = io.BytesIO()
    shared = torch.ones(3)
    torch.save({"a": nn.Parameter(shared), "b": shared.half().float()[None].expand(2, 3)[0]}, weights)
    with zipfile.ZipFile(weights) as archive:
        write("torch_program", "weights", b"P" + archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl"))))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("serialized_exported_program.json", (SEEDS / "torch_program" / "view").read_bytes()[1:])
        made.writestr("serialized_state_dict.pt", weights.getvalue())
    write("torch_program", "archive", b"Z" + archive.getvalue())


def png(width: int, height: int, bits: int, colour: int, rows: bytes, extra: bytes = b"") -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def arrays() -> None:
    def stored(function, *arguments, **names) -> bytes:
        out = io.BytesIO()
        function(out, *arguments, **names)
        return out.getvalue()

    def sound(channels: int, width: int) -> bytes:
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(width)
            file.setframerate(8000)
            file.writeframes(bytes(range(channels * width * 8)))
        return out.getvalue()

    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    write("array_file", "npz", b"\0" + stored(np.savez, a=numbers, b=np.int64(7)))
    write("array_file", "npz_deflated", b"\0" + stored(np.savez_compressed, a=numbers))
    for dtype in ("<f4", ">f8", "<f2", "|b1", "<i8", "|V2"):
        name = "npy_" + "".join(c for c in dtype if c.isalnum()) + ("_big" if dtype[0] == ">" else "")
        write("array_file", name, b"\1" + stored(np.save, np.zeros((2, 3), dtype)))
    write("array_file", "npy_fortran", b"\1" + stored(np.save, np.asfortranarray(numbers)))
    write("array_file", "png_rgb", b"\2" + png(2, 2, 8, 2, b"\0" + bytes(6) + b"\1" + bytes(6)))
    write("array_file", "png_grey16", b"\2" + png(2, 2, 16, 0, (b"\2" + bytes(4)) * 2))
    palette = struct.pack(">I", 6) + b"PLTE" + bytes(6) + struct.pack(">I", zlib.crc32(b"PLTE" + bytes(6)))
    write("array_file", "png_palette", b"\2" + png(2, 2, 1, 3, b"\0\x40" * 2, palette))
    write("array_file", "wav_mono", b"\3" + sound(1, 2))
    write("array_file", "wav_stereo24", b"\7" + sound(2, 3))


def weights() -> None:
    def stored(header: str, data: bytes) -> bytes:
        return len(header).to_bytes(8, "little") + header.encode() + data

    entry = '"dtype":"F32","shape":[2],"data_offsets":[0,8]'
    write("safetensors", "one", stored(f'{{"__metadata__":{{"format":"pt"}},"w":{{{entry}}}}}', bytes(8)))
    write("safetensors", "twice", stored(f'{{"w":{{{entry}}},"w":{{{entry}}}}}', bytes(8)))
    write("safetensors", "short", stored(f'{{"w":{{{entry}}}}}', bytes(4)))
    for name, array in {"plain": np.ones((2, 3), np.float32), "fortran": np.asfortranarray(np.ones((2, 3), np.float16)), "structured": np.zeros(2, [("a", "<f4")]), "scalar": np.array(1)}.items():
        file = io.BytesIO()
        np.save(file, array)
        write("npy", name, file.getvalue())


def uses() -> None:
    generator = np.random.default_rng(1)
    for number in range(8):
        write("shape_rules", f"bytes_{number}", generator.integers(0, 256, 120, np.uint8).tobytes())


def timings() -> None:
    first, step = b"polyphase timing cache 1\n", b"machine, 1 thread\tconv{}(0 1)* : f32[1, 3]@0,1 > f32[1, 3]@0,1\t"
    write("timing_cache", "two", first + step + b"conv_gemm 512 conv_winograd 34\n" + b"machine\tstep\trow 2\n")
    write("timing_cache", "twice", first + step + b"conv_gemm 5\n" + step + b"conv_pixels 6\n")
    write("timing_cache", "damaged", first + step + b"conv_gemm x\n" + step + b"conv_gemm 99999999999999999999\n\n\t\t\n" + step)


def main() -> int:
    models()
    timings()
    arrays()
    weights()
    uses()
    programs()
    engines(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())

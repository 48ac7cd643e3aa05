"""Times every layer of a .cases file in ONNX Runtime and in layers_bench, side by side, and prints the ratios.

usage: compare_onnxruntime.py LAYERS_BENCH suite.cases [--threads N] [--filter TEXT] [--rounds 3] [--seconds 0.4]

Both sides take channels-first FP32 in and out, constant weights, batch as written. Rounds alternate between the two, and
each side's figure is its fastest median, so that a busy machine disturbs both alike.
"""
import argparse
import math
import re
import subprocess
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper


def axes(text):
    return [int(v) for v in re.findall(r"-?\d+", text)]


def parse(line):
    words = line.split()
    case = {"name": words[0], "op": words[1], "bias": "bias" in words}
    for word in words[2:]:
        for key in ("pre", "post", "in", "n", "g", "c", "k", "s", "d"):
            if re.match(key + r"-?\d", word):
                case[key] = axes(word[len(key):])
                break
    return case


def model(case):
    transposed = case["op"] == "conv_transpose"
    groups, (cin, cout) = case["g"][0], case["c"]
    shape = [cin, cout // groups] if transposed else [cout, cin // groups]
    rng = np.random.default_rng(1)
    weight = rng.standard_normal(shape + case["k"]).astype(np.float32) * 0.05
    inits = [onnx.numpy_helper.from_array(weight, "w")]
    if case["bias"]:
        inits.append(onnx.numpy_helper.from_array(rng.standard_normal(cout).astype(np.float32), "b"))
    pre, post = case["pre"], case["post"]
    # ONNX wants pads >= 0: a negative crop at the end is output_padding.
    extra = [max(0, -p) for p in post]
    attributes = {"strides": case["s"], "dilations": case["d"], "group": groups, "kernel_shape": case["k"],
                  "pads": pre + [max(0, p) for p in post]}
    if transposed and any(extra):
        attributes["output_padding"] = extra
    if transposed and any(e and p for e, p in zip(extra, pre)):  # fold into the form exporters write
        attributes["pads"] = pre + pre
        attributes["output_padding"] = [a - b for a, b in zip(pre, post)]
    if transposed and all(a >= b for a, b in zip(pre, post)):
        attributes["pads"] = pre + pre
        attributes["output_padding"] = [a - b for a, b in zip(pre, post)]
    node = helper.make_node("ConvTranspose" if transposed else "Conv", ["x", "w"] + (["b"] if case["bias"] else []), ["y"],
                            **attributes)
    x_shape = [case["n"][0], cin] + case["in"]
    graph = helper.make_graph([node], "layer", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x_shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], inits)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made.SerializeToString(), np.random.default_rng(2).standard_normal(x_shape).astype(np.float32)


def session(data, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def median_ms(sess, x, seconds):
    binding = sess.io_binding()
    value = ort.OrtValue.ortvalue_from_numpy(x)
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y")
    sess.run_with_iobinding(binding)
    out = binding.get_outputs()[0]
    binding.bind_ortvalue_output("y", out)
    times = []
    start = time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - start < seconds and len(times) < 2000):
        t = time.perf_counter()
        sess.run_with_iobinding(binding)
        times.append(time.perf_counter() - t)
    return sorted(times)[len(times) // 2] * 1e3


def ours_ms(args, name):
    command = [args.bench, args.cases, "--threads", str(args.threads), "--filter", name, "--seconds", str(args.seconds), "--no-check"]
    best = None
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        fields = line.split()
        if fields and fields[0] == name and (best is None or float(fields[2]) < best[1]):
            best = (fields[1], float(fields[2]), float(fields[5]))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("cases")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4)
    args = parser.parse_args()
    ratios = []
    print(f"{'layer':30} {'kernel':12} {'ORT ms':>9} {'ours ms':>9} {'ratio':>6} {'%peak':>6}")
    for line in open(args.cases):
        if not line.strip() or line.startswith("#"):
            continue
        case = parse(line)
        if args.filter not in case["name"]:
            continue
        data, x = model(case)
        theirs, ours = [], []
        for _ in range(args.rounds):
            sess = session(data, args.threads)
            theirs.append(median_ms(sess, x, args.seconds))
            del sess
            ours.append(ours_ms(args, case["name"]))
        ort_ms = min(theirs)
        best = min(ours, key=lambda o: o[1])
        ratios.append(ort_ms / best[1])
        print(f"{case['name']:30} {best[0]:12} {ort_ms:9.3f} {best[1]:9.3f} {ratios[-1]:6.2f} {best[2]:6.1f}", flush=True)
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, "
          f"{sum(r >= 0.8 for r in ratios)} of {len(ratios)} at 0.8 or better, worst {min(ratios):.2f}")


if __name__ == "__main__":
    main()

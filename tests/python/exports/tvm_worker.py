"""Runs models in TVM, in the Python that has it: reads pickled (model's bytes, inputs) from stdin, answers each with a pickled (output, '') or
(None, what TVM said). The ONNX front end, LegalizeOps and a build for the CPU, as a user's program has them."""
from __future__ import annotations

import os
import pickle
import sys


def run(model: bytes, inputs: dict):
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(onnx.load_model_from_string(model), keep_params_in_input=False)
    module = relax.transform.LegalizeOps()(module)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    order = [parameter.name for parameter in module["main"].params]
    result = machine["main"](*[tvm.runtime.tensor(inputs[name]) for name in order])
    return (result if hasattr(result, "numpy") else result[0]).numpy()


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whoever prints does not write into the answers
    while True:
        try:
            model, inputs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = (run(model, inputs), "")
        except BaseException as said:  # noqa: BLE001: TVM raises what its C++ side threw
            answer = (None, f"{type(said).__name__}: {said}"[-600:] or "refused")
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()

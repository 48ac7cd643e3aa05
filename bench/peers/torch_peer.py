"""PyTorch: eager, eager with channels-last tensors, and torch.compile by Inductor with frozen weights."""

from __future__ import annotations

import numpy as np
import torch
from work import Unable, Work

NAME = "torch"
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


class Runner:
    channels_last = False
    compiled = False

    def __init__(self, work: Work, threads: int, isa: str) -> None:  # noqa: ARG002: environment variables hold it (worker.py)
        if work.module is None:
            raise Unable("there is no PyTorch module")
        torch.set_num_threads(threads)
        inputs = [torch.from_numpy(array).to(DTYPES[work.dtype]) for array in work.inputs.values()]
        self.module = work.module().to(DTYPES[work.dtype])
        if self.channels_last:
            rank = max(x.dim() for x in inputs)
            if rank not in FORMATS:
                raise Unable("there is no channels-last format of this rank")
            self.module = self.module.to(memory_format=FORMATS[rank])
            inputs = [x.contiguous(memory_format=FORMATS[x.dim()]) if x.dim() in FORMATS else x for x in inputs]
        self.inputs = inputs
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=work.precision == "auto")
        if self.compiled:
            import torch._inductor.config as config

            config.freezing = True
            self.module = torch.compile(self.module, dynamic=False)
        try:
            self.run()
        except Exception as error:  # noqa: BLE001: whatever PyTorch raises
            raise Unable(str(error).strip().splitlines()[0]) from error

    def run(self):
        with torch.inference_mode() if not self.compiled else torch.no_grad(), self.autocast:
            return self.module(*self.inputs)

    def outputs(self) -> list[np.ndarray]:
        found = self.run()
        return [one.contiguous().float().numpy() for one in ([found] if isinstance(found, torch.Tensor) else found)]

"""Complex numbers, inside of a program only: operands and results are real."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from torch_cases.case import CASES, Case, X, noise, reals, use, whole


def complex_use(overload: str, call: Callable, *shapes, label: str = "/complex", **more):
    """`call` gets the overload, then complex tensors of the shapes; what it gives that is complex is looked at by its parts."""

    def plain(result):
        if isinstance(result, (tuple, list)):
            return tuple(plain(one) for one in result)
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result.resolve_neg()

    def whole(op, *parts):
        return plain(call(op, *map(torch.view_as_complex, parts)))

    use(overload, whole, *(noise(*shape, 2) for shape in shapes), label=label, **more)


Z, ZZ = (3, 4), (2, 3, 4)
for same in "alias clone contiguous detach lift_fresh_copy neg _conj conj _conj_physical conj_physical resolve_conj resolve_neg squeeze".split():
    complex_use(same, lambda op, z: op(z), Z, static_only=same == "squeeze")
complex_use("t", lambda op, z: op(z) * 2, Z)
for parts in "abs angle real imag sgn exp reciprocal square sum mean".split():
    complex_use(parts, lambda op, z: op(z) + 0, Z, tolerance=2e-5)
use("angle", lambda op, x: op(x), X)
use("sgn", lambda op, x: op(x), X)
use("conj_physical", lambda op, x: op(x), X)
use("resolve_conj", lambda op, x: op(x) + 0, X)
use("resolve_neg", lambda op, x: op(x) + 0, X)
use("_neg_view", lambda op, x: op(x).resolve_neg() + 0, X)
complex_use("view_as_real", lambda op, z: op(z) * 2, Z)
use("view_as_complex", lambda op, x: torch.view_as_real(op(x) * 2), noise(3, 4, 2))
use("complex", lambda op, x, y: torch.view_as_real(op(x, y)), X, reals(4))
use("polar", lambda op, x, y: torch.view_as_real(op(x, y)), X, reals(4))
for binary in "add.Tensor sub.Tensor mul.Tensor div.Tensor".split():
    complex_use(binary, lambda op, z, w: (op(z, w), op(z, w.abs()), op(z.real, w), op(z, 2.5), op(z, 1 - 2j), op(z.abs(), 2j)), Z, (4,), tolerance=2e-5)
for binary in "add.Scalar sub.Scalar mul.Scalar div.Scalar rsub.Scalar".split():
    complex_use(binary, lambda op, z: (op(z, 2.5), op(z, 1 - 2j)), Z, tolerance=1e-5)
complex_use("add.Tensor", lambda op, z, w: op(z, w, alpha=0.5), Z, (4,), label="/complex alpha")
complex_use("rsub.Tensor", lambda op, z, w: op(z, w), Z, (4,))
complex_use("pow.Tensor_Scalar", lambda op, z: (op(z, 1), op(z, 2), op(z, 3)), Z, tolerance=1e-5)
complex_use("mul.Tensor", lambda op, z: torch.exp(op(z.real, 1j)), Z, label="/phase")
for product, shapes in {"mm": (Z, (4, 5)), "bmm": (ZZ, (2, 4, 5)), "matmul": (ZZ, (4, 5)), "mv": (Z, (4,))}.items():
    complex_use(product, lambda op, z, w: op(z, w), *shapes, tolerance=1e-5)
complex_use("einsum", lambda op, z, w: (op("bix,iox->box", [z, w]), op("bix->bi", [z])), ZZ, (3, 5, 4), tolerance=1e-5)
for where in "where.self where.ScalarOther where.ScalarSelf".split():
    complex_use(where, lambda op, z, name=where: op(z.real > 0, *{"r": (z, 2.0), "f": (2.0, z), "s": (z, z.conj())}[name[-1] if name[-1] in "rf" and name != "where.self" else "s"]), Z)
for fill in (0.5, 2 + 1j):
    complex_use("masked_fill.Scalar", lambda op, z, fill=fill: op(z, z.real > 0, fill), Z, label=f"/complex {fill}")
complex_use("masked_fill.Tensor", lambda op, z: op(z, z.real > 0, torch.tensor(0.5)), Z)
for to in "_to_copy to.dtype_layout".split():
    use(to, lambda op, x: torch.view_as_real(op(x, dtype=torch.complex128) * 1j), X, label="/complex")
use("to.dtype", lambda op, x: torch.view_as_real(op(x, torch.complex64) * 1j), X, label="/complex")
use("to.device", lambda op, x: torch.view_as_real(op(x, torch.device("cpu"), torch.complex64) * 1j), X, label="/complex")
for to in "to.other type_as".split():
    complex_use(to, lambda op, z: (op(z.real, z), op(z.abs().double(), z)), Z)

complex_use("view", lambda op, z: op(z, [z.shape[0], -1]), ZZ)
complex_use("_unsafe_view", lambda op, z: op(z, [-1, z.shape[2]]), ZZ)
complex_use("reshape", lambda op, z: op(z, [-1]), ZZ)
complex_use("flatten.using_ints", lambda op, z: (op(z, 1), op(z, 0, 1), op(z, -2)), ZZ)
complex_use("unflatten.int", lambda op, z: op(z, -1, [2, -1]), ZZ)
complex_use("squeeze.dim", lambda op, z: op(z, -1), (2, 3, 1), static_only=True)
complex_use("squeeze.dims", lambda op, z: op(z, [1, -1]), (2, 1, 3, 1), static_only=True)
complex_use("unsqueeze", lambda op, z: (op(z, 0), op(z, -1)), Z)
complex_use("permute", lambda op, z: op(z, [2, 0, -2]), ZZ)
complex_use("transpose.int", lambda op, z: op(z, 0, -1), ZZ)
complex_use("swapaxes", lambda op, z: op(z, 0, -1), ZZ)
complex_use("swapdims", lambda op, z: op(z, -1, 0), ZZ)
complex_use("movedim.int", lambda op, z: op(z, -1, 0), ZZ)
complex_use("movedim.intlist", lambda op, z: op(z, [0, -1], [-1, 0]), ZZ)
complex_use("expand", lambda op, z: op(z.unsqueeze(1), [2, -1, 3, -1]), Z)
complex_use("broadcast_to", lambda op, z: op(z, [3, 4]), (4,), static_only=True)
complex_use("broadcast_tensors", lambda op, z, w: tuple(op([z, w])), Z, (4,), static_only=True)
complex_use("repeat", lambda op, z: op(z, [2, 1, 3]), Z)
complex_use("tile", lambda op, z: op(z, [2]), Z)
complex_use("repeat_interleave.self_int", lambda op, z: (op(z, 2, 1), op(z, 2)), Z)
complex_use("cat", lambda op, z, w: (op([z, w], -1), op([z, w.real], 1)), Z, (3, 2))
complex_use("concat", lambda op, z, w: op([z, w]), Z, (2, 4))
complex_use("stack", lambda op, z: op([z, z * 2, z.real], -1), Z)
complex_use("split.Tensor", lambda op, z: tuple(op(z, 2, -1)), (3, 5), static_only=True)
complex_use("chunk", lambda op, z: tuple(op(z, 3, -1)), (3, 7), static_only=True)
complex_use("split_with_sizes", lambda op, z: tuple(op(z, [1, 3], -1)), Z, static_only=True)
complex_use("unbind.int", lambda op, z: tuple(op(z, -1)), Z, static_only=True)
complex_use("select.int", lambda op, z: (op(z, 1, 2), op(z, -1, -1)), ZZ)
complex_use("slice.Tensor", lambda op, z: (op(z, 1, 1, 3), op(z, -1, -3, -1)), ZZ)
complex_use("narrow", lambda op, z: op(z, -1, 1, 2), ZZ)
complex_use("index_select", lambda op, z: op(z, -1, torch.tensor([3, 0, 0])), Z)
for index in ("index.Tensor", "_unsafe_index.Tensor"):
    complex_use(index, lambda op, z: op(z, [None, torch.tensor([1, 0, 1])]), ZZ)
complex_use("index_put", lambda op, z, w: (op(z, [torch.tensor([2, 0])], w), op(z, [z.real > 0], w[0, 0])), Z, (2, 4), static_only=True)
complex_use("gather", lambda op, z: op(z, 1, torch.tensor([[3, 0], [1, 1], [0, 2]])), Z)
complex_use("flip", lambda op, z: op(z, [0, -1]), ZZ)
complex_use("roll", lambda op, z: (op(z, [1, -1], [0, 2]), op(z, [5])), ZZ)
complex_use("diagonal", lambda op, z: op(z, 1), Z)
complex_use("unfold", lambda op, z: op(z, -1, 3, 1), (4, 6))
complex_use("cumsum", lambda op, z: op(z, -1), Z)
complex_use("sum.dim_IntList", lambda op, z: (op(z, [1], True), op(z, [0, -1])), ZZ)
complex_use("mean.dim", lambda op, z: (op(z, [1], True), op(z, [0, -1])), ZZ)
complex_use("constant_pad_nd", lambda op, z: op(z, [1, 2, -1, 0]), ZZ)
complex_use("pad", lambda op, z: (op(z, [1, 2, 2, 1]), op(z, [1, 1, 2, 0], "reflect")), (2, 3, 4, 5))
complex_use("copy", lambda op, z, w: op(z, w), Z, (4,))
complex_use("select_scatter", lambda op, z, w: op(z, w, -1, -1), (4, 3), (4,))
complex_use("slice_scatter", lambda op, z, w: op(z, w, -1, 1, 3), Z, (3, 2), static_only=True)
complex_use("new_zeros", lambda op, z: op(z, [2, z.shape[0]]) + z[0, 0], Z)
complex_use("zeros_like", lambda op, z: op(z) + z, Z)
complex_use("full", lambda op, z: op([z.shape[1]], 1 + 2j) + z, Z)
complex_use("full_like", lambda op, z: (op(z, 1 + 2j) + z, op(z, 3) + z), Z)
complex_use("scalar_tensor", lambda op, z: op(2j, dtype=torch.complex64) + z, Z)
complex_use("zeros", lambda op, z: op([z.shape[1]], dtype=torch.complex64) + z, Z)

for inverse in ("", "i"):
    for norm in (None, "backward", "ortho", "forward"):
        complex_use(f"fft_{inverse}fft", lambda op, z, norm=norm: (op(z, norm=norm), op(z, 6, 0, norm)), (5, 9), label=f"/{norm}", tolerance=1e-5)
        complex_use(f"fft_{inverse}fft2", lambda op, z, norm=norm: (op(z, norm=norm), op(z, [6, 4], [0, -1], norm)), (5, 3, 8), label=f"/{norm}", tolerance=1e-5)
        complex_use(f"fft_{inverse}fftn", lambda op, z, norm=norm: (op(z, norm=norm), op(z, [4], norm=norm), op(z, [6, -1], [1, 0], norm)), (5, 3, 8), label=f"/{norm}", tolerance=1e-5)
    use(f"fft_{inverse}fft", lambda op, x: torch.view_as_real(op(x).resolve_conj()), noise(3, 8), label="/real", tolerance=1e-5)
    use(f"fft_{inverse}fft2", lambda op, x: torch.view_as_real(op(x).resolve_conj()), whole(3, 8, 5), label="/integers", tolerance=1e-5)
    use(f"fft_{inverse}fftn", lambda op, x: torch.view_as_real(op(x).resolve_conj()), noise(3, 7), label="/real", tolerance=1e-5)
    complex_use(f"fft_{inverse}fftshift", lambda op, z: (op(z), op(z, [-1])), (4, 5))
    use(f"fft_{inverse}fftshift", lambda op, x: (op(x), op(x, [0])), noise(4, 5))
for norm in (None, "ortho", "forward"):
    use("fft_rfft", lambda op, x, norm=norm: tuple(map(torch.view_as_real, (op(x, norm=norm), op(x, 5, 0, norm), op(x, 12, -1, norm)))), noise(6, 9), label=f"/{norm}", tolerance=1e-5)
    use("fft_rfft2", lambda op, x, norm=norm: tuple(map(torch.view_as_real, (op(x, norm=norm), op(x, [4, 6], [0, 2], norm)))), noise(5, 6, 7), label=f"/{norm}", tolerance=1e-5)
    use("fft_rfftn", lambda op, x, norm=norm: tuple(map(torch.view_as_real, (op(x, norm=norm), op(x, None, [2, 1], norm)))), noise(5, 6, 7), label=f"/{norm}", tolerance=1e-5)
    complex_use("fft_irfft", lambda op, z, norm=norm: (op(z, norm=norm), op(z, 5, 0, norm), op(z, 9, -1, norm)), (6, 5), label=f"/{norm}", tolerance=1e-5)
    complex_use("fft_irfft2", lambda op, z, norm=norm: (op(z, norm=norm), op(z, [4, 7], [0, 2], norm)), (5, 6, 5), label=f"/{norm}", tolerance=1e-5)
    complex_use("fft_irfftn", lambda op, z, norm=norm: (op(z, norm=norm), op(z, None, [2, 1], norm)), (5, 6, 4), label=f"/{norm}", tolerance=1e-5)
use("fft_irfft", lambda op, x: op(x), noise(3, 5), label="/real", tolerance=1e-5)
for norm in range(3):
    use("_fft_r2c", lambda op, x, norm=norm: (torch.view_as_real(op(x, [0, 1], norm, True)), torch.view_as_real(op(x, [1], norm, False))), noise(4, 7), label=f"/{norm}", tolerance=1e-5)
    complex_use("_fft_c2r", lambda op, z, norm=norm: op(z, [0, 1], norm, 7), (4, 4), label=f"/{norm}", tolerance=1e-5, static_only=True)
    complex_use("_fft_c2c", lambda op, z, norm=norm: (op(z, [0, 1], norm, True), op(z, [1], norm, False)), (4, 6), label=f"/{norm}", tolerance=1e-5)
for frequencies in ("fft_fftfreq", "fft_rfftfreq"):
    use(frequencies, lambda op, x: op(8) + x[0, 0], X)
    use(frequencies, lambda op, x: op(7, 0.5) + x[0, 0], X, label="/odd")
for window in ("hann_window", "hamming_window"):
    use(window, lambda op, x: op(4) * x, X)
    use(f"{window}.periodic", lambda op, x: op(4, False) * x, X)
use("hamming_window.periodic_alpha", lambda op, x: op(4, True, 0.6) * x, X)
use("hamming_window.periodic_alpha_beta", lambda op, x: op(4, False, 0.6, 0.3) * x, X)

SIGNAL, WINDOW = noise(2, 90), torch.hann_window(12) + 0.1
use("stft", lambda op, x: torch.view_as_real(op(x, 16, return_complex=True)), SIGNAL, tolerance=1e-5)
use("stft", lambda op, x: torch.view_as_real(op(x[0], 15, 4, 12, WINDOW, True, return_complex=True)), SIGNAL, label="/window", tolerance=1e-5)
use("stft", lambda op, x: torch.view_as_real(op(x, 16, 5, onesided=False, return_complex=True)), SIGNAL, label="/two sides", tolerance=1e-5)
use("stft", lambda op, x: op(x, 16, 5, return_complex=False), SIGNAL, label="/pairs", tolerance=1e-5)
complex_use("stft", lambda op, z: op(z, 12, 5, None, WINDOW, return_complex=True), (2, 50), tolerance=1e-5)
for mode in ("reflect", "constant"):
    use("stft.center", lambda op, x, mode=mode: torch.view_as_real(op(x, 16, 4, 12, WINDOW, True, mode, return_complex=True)), SIGNAL, label=f"/{mode}", tolerance=1e-5)
# In istft PyTorch squares the window in its own type: one of FP32 would bring its rounding into FP64.
complex_use("istft", lambda op, z: op(z, 16, 4, 12, WINDOW.to(z.real.dtype)), (2, 9, 20), tolerance=1e-5)
complex_use("istft", lambda op, z: op(z[0], 16, 4, 12, WINDOW.to(z.real.dtype), normalized=True, length=60), (2, 9, 20), label="/length", tolerance=1e-5)
complex_use("istft", lambda op, z: op(z, 16, 4, None, None, False, onesided=False), (2, 16, 20), label="/two sides", tolerance=1e-5)
complex_use("istft", lambda op, z: op(z, 600, 250, None, None, True), (1, 301, 5), label="/long", tolerance=1e-5)
complex_use("istft", lambda op, z: op(z, 512, 128, None, torch.hann_window(512, dtype=z.real.dtype), True, length=600), (1, 257, 6), label="/long length", tolerance=1e-5)

complex_use("rot90", lambda op, z: op(z, 1, [0, -1]), Z)


class Fourier(nn.Module):
    """A convolution of spectra as inpainting networks have it, and a vocoder's head: spectrogram, mask, phases, inverse."""

    def __init__(self):
        super().__init__()
        self.spectra = nn.Conv2d(6, 6, 1)
        self.mask = nn.Conv1d(18, 18, 3, padding=1)
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("turns", torch.polar(torch.ones(9, 1), torch.arange(9.0)[:, None]))

    def forward(self, x, signal):
        f = torch.fft.rfftn(x, dim=(-2, -1), norm="ortho")
        f = torch.stack((f.real, f.imag), -1).permute(0, 1, 4, 2, 3).contiguous().view(x.shape[0], -1, *f.shape[2:])
        f = torch.relu(self.spectra(f)).view(x.shape[0], -1, 2, *f.shape[-2:]).permute(0, 1, 3, 4, 2).contiguous()
        image = x + torch.fft.irfftn(torch.complex(f[..., 0], f[..., 1]), s=x.shape[-2:], dim=(-2, -1), norm="ortho")
        z = torch.stft(signal, 16, 4, window=self.window, return_complex=True) * self.turns
        size, phase = self.mask(torch.cat([z.abs(), z.imag], 1)).chunk(2, 1)
        sound = torch.istft(size.exp().clip(max=10) * torch.exp(1j * phase), 16, 4, window=self.window)
        low = torch.fft.fft2(x)
        low[..., 1:3, 1:3] *= 0.5
        return image, sound, torch.fft.ifft2(low).real + 0


CASES.append(Case("fourier network", Fourier, lambda: [noise(2, 3, 6, 9), noise(2, 64)], 1e-5, names=["x", "signal"]))

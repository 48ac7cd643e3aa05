"""What networks are built of: products, attention, normalisations, pools, resampling, convolutions, recurrences."""

from __future__ import annotations

import deform_conv
import torch
from torch import nn

from torch_cases.case import CASES, Case, X, Y, aten, noise, positive, reals, use

use("matmul", lambda op, x, y: op(x, y), noise(2, 3, 4), noise(4, 5))
use("matmul", lambda op, x, y: op(x, y), noise(4), noise(2, 4, 5), label="/vector")
use("matmul", lambda op, x, y: (op(x.half(), y.half()), op(x, y)), noise(5, 0, 0), noise(0, 0), label="/empty", static_only=True)
use("mm", lambda op, x, y: op(x, y), noise(3, 4), noise(4, 5))
use("bmm", lambda op, x, y: op(x, y), noise(2, 3, 4), noise(2, 4, 5))
use("addmm", lambda op, b, x, y: op(b, x, y, beta=0.5, alpha=2), noise(5), noise(3, 4), noise(4, 5))
use("baddbmm", lambda op, b, x, y: op(b, x, y), noise(2, 3, 5), noise(2, 3, 4), noise(2, 4, 5))
use("linear", lambda op, x, w, b: (op(x, w, b), op(x, w)), noise(2, 3, 4), noise(5, 4), noise(5))
use("einsum", lambda op, x, y: (op("bi,bj->bij", [x, y]), op("...i,ji->...j", [x, x]), op("ij->j", [x])), X, reals(3, 5))
use("mse_loss", lambda op, x, y: (op(x, y), op(x, y, 0), op(x, y, 2)), X, reals(4) + 1)
use("l1_loss", lambda op, x, y: (op(x, y), op(x, y, 0)), X, reals(3, 4) + 1)
for distance in "cdist _cdist_forward".split():
    use(distance, lambda op, x, y: (op(x, y, 2.0, None), op(x, y, 1.0, None), op(x, y, 3.0, None), op(x, y, 0.0, None), op(x, y, float("inf"), None)), reals(2, 3, 4), noise(2, 5, 4), tolerance=1e-4)
for distance in "pdist _pdist_forward".split():
    use(distance, lambda op, x: (op(x, 2.0), op(x, 1.0), op(x, 0.0), op(x, 3.0), op(x, float("inf"))), noise(9, 4), tolerance=1e-4)
use("outer", lambda op, x, y: (op(x, y), op(x > 0, y > 0), op(x > 0, y)), reals(3), reals(4))
for dot in "dot vdot".split():
    use(dot, lambda op, x, y: op(x, y), reals(4), reals(4) + 1)
use("mv", lambda op, x, y: op(x, y), X, reals(4))
use("im2col", lambda op, x: (op(x, [2, 3], [1, 2], [1, 0], [2, 1]), op(x[0], [2, 2], [1, 1], [0, 0], [1, 1])), noise(2, 3, 5, 8))
use("channel_shuffle", lambda op, x: op(x, 2), noise(2, 4, 3, 3))
ATTENDED = (noise(2, 3, 5, 4), noise(2, 3, 6, 4), noise(2, 3, 6, 7))
use("scaled_dot_product_attention", lambda op, q, k, v: op(q, k, v), *ATTENDED, static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v, m: op(q, k, v, m), *ATTENDED, noise(5, 6), label="/bias", static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v, m: op(q, k, v, m > 0), *ATTENDED, reals(5, 6), label="/mask", static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v: op(q, k, v, None, 0.0, True, scale=0.3), *ATTENDED, label="/causal", static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v: op(q, k, v), noise(3, 5, 4), noise(3, 6, 4), noise(3, 6, 4), label="/rank 3", static_only=True)
use("scaled_dot_product_attention", lambda op, q, k, v: (op(q[0], k, v), op(q, k[1], v[:1]), op(q[0, 0], k, v)), *ATTENDED, label="/ranks", static_only=True)

STATISTICS = (noise(2, 3, 4, 5), positive(3), reals(3), reals(3), positive(3))
use("batch_norm", lambda op, x, w, b, m, v: op(x, w, b, m, v, False, 0.1, 1e-5, False), *STATISTICS)
use("batch_norm", lambda op, x, w, b, m, v: op(x, None, None, m, v, False, 0.1, 1e-5, False) + w[0] + b[0], *STATISTICS, label="/plain")
use("native_batch_norm", lambda op, x, w, b, m, v: op(x, w, b, m, v, False, 0.1, 1e-5)[0], *STATISTICS)
use("_native_batch_norm_legit_no_training", lambda op, x, w, b, m, v: op(x, w, b, m, v, 0.1, 1e-5)[0], *STATISTICS)
use("instance_norm", lambda op, x, w, b, m, v: op(x, w, b, None, None, True, 0.1, 1e-5, False) + m[0] + v[0], *STATISTICS, tolerance=1e-5)
use("instance_norm", lambda op, x, w, b, m, v: op(x, w, b, m, v, False, 0.1, 1e-5, False), *STATISTICS, label="/statistics")
use("_native_batch_norm_legit.no_stats", lambda op, x, w, b, m, v: op(x, w, b, True, 0.1, 1e-5)[0] + m[0] + v[0], *STATISTICS, tolerance=1e-5)
use("group_norm", lambda op, x, w, b: op(x, 2, w, b), noise(2, 4, 3, 5), positive(4), reals(4), tolerance=1e-5, static_only=True)
use("native_group_norm", lambda op, x, w, b: op(x, w, b, 2, 4, 15, 2, 1e-5)[0], noise(2, 4, 3, 5), positive(4), reals(4), tolerance=1e-5, static_only=True)
use("layer_norm", lambda op, x, w, b: op(x, [3, 5], w, b), noise(2, 3, 5), positive(3, 5), reals(3, 5), tolerance=1e-5, static_only=True)
use("layer_norm", lambda op, x, w, b: op(x, [75], w, b), noise(7, 3, 75) + 30, positive(75), reals(75), label="/rest of a row", tolerance=1e-4, static_only=True)
use("layer_norm", lambda op, x: op(x, [2500]), noise(3, 2500) * 5 - 4, label="/long rows", tolerance=1e-5, static_only=True)
use("native_layer_norm", lambda op, x, w, b: op(x, [5], w, b, 1e-5)[0], noise(2, 3, 5), positive(5), reals(5), tolerance=1e-5, static_only=True)
use("rms_norm", lambda op, x, w: (op(x, [5], w), op(x, [5], None, 1e-3)), noise(2, 3, 5), positive(5), tolerance=1e-5, static_only=True)
use("_weight_norm", lambda op, v, g: (op(v, g, 0), op(v[:, 0, 0], g[:, 0, 0], 0)), noise(3, 4, 2), positive(3, 1, 1))

for rank, sizes in ((1, (9,)), (2, (9, 8)), (3, (6, 7, 5))):
    images = noise(2, 3, *sizes)
    for pool in ("max", "avg"):
        use(f"{pool}_pool{rank}d", lambda op, x, r=rank: (op(x, [3] * r, [2] * r, [1] * r), op(x, [2]), op(x, [3] * r, [2] * r, [0] * r, ceil_mode=True)), images)
        use(f"{pool}_pool{rank}d", lambda op, x, r=rank: op(x, [2] * r), images[0], label="/unbatched")
    use(f"avg_pool{rank}d", lambda op, x, r=rank: op(x, [3] * r, [2] * r, [1] * r, count_include_pad=False), images, label="/without padding")
    use(f"adaptive_avg_pool{rank}d", lambda op, x, r=rank: (op(x, [1] * r), op(x, [4] * r)), images)
    scales = (2.0, 1.5, 2.0)[:rank]
    larger = [11, 16, 9][:rank]
    linear = {1: "upsample_linear1d", 2: "upsample_bilinear2d", 3: "upsample_trilinear3d"}[rank]
    for nearest in (f"upsample_nearest{rank}d", f"_upsample_nearest_exact{rank}d"):
        use(nearest, lambda op, x, to=larger: op(x, to), images, static_only=True)
        use(f"{nearest}.vec", lambda op, x, s=scales: op(x, None, s), images)
    for smooth in (linear, *(["upsample_bicubic2d"] if rank == 2 else [])):
        use(smooth, lambda op, x, to=larger: (op(x, to, True), op(x, to, False)), images, static_only=True, tolerance=1e-5)
        use(f"{smooth}.vec", lambda op, x, s=scales: op(x, None, False, s), images, tolerance=1e-5)
        use(f"{smooth}.vec", lambda op, x, to=larger: op(x, to, True, None), images, label="/sizes", static_only=True, tolerance=1e-5)
    use(f"reflection_pad{rank}d", lambda op, x, r=rank: op(x, [2, 1] * r), images)
    use(f"replication_pad{rank}d", lambda op, x, r=rank: op(x, [2, 1] * r), images)
use("upsample_nearest2d", lambda op, x: op(x, [18, 16], 2.0, 2.0), noise(2, 3, 9, 8), label="/scales", static_only=True)
use("max_pool2d", lambda op, x: op(x, [3], [1], [1], [2]), noise(2, 3, 9, 8), label="/dilated")
use("max_pool2d_with_indices", lambda op, x: op(x, [3, 2], [2, 2], [1, 0]), noise(2, 3, 9, 8))
use("max_pool3d_with_indices", lambda op, x: op(x, [3, 2, 2], [2, 2, 1], [1, 0, 1]), noise(2, 3, 6, 7, 5))
use("avg_pool2d", lambda op, x: op(x, [3, 2], [2], [1, 1], False, True, 5), noise(2, 3, 9, 8), label="/divisor")
use("_adaptive_avg_pool2d", lambda op, x: op(x, [3, 5]), noise(2, 3, 9, 8), static_only=True)
use("_adaptive_avg_pool3d", lambda op, x: op(x, [2, 3, 4]), noise(2, 3, 6, 7, 5), static_only=True)
use("constant_pad_nd", lambda op, x: (op(x, [1, 2, -1, 0], 0.5), op(x, [1, 1])), Y)
for mode in "constant reflect replicate circular".split():
    use("pad", lambda op, x, mode=mode: op(x, [1, 2, 2, 1], mode), noise(2, 3, 4, 5), label=f"/{mode}")
GRID = torch.stack([noise(2, 4, 5), noise(2, 5, 4).transpose(1, 2)], -1) * 0.8
for mode in range(3):
    use("grid_sampler", lambda op, x, g, m=mode: op(x, g, m, m, m == 1), noise(2, 3, 6, 7), GRID, label=f"/{mode}", tolerance=1e-5)
use("grid_sampler_2d", lambda op, x, g: op(x, g, 0, 0, False), noise(2, 3, 6, 7), GRID, tolerance=1e-5)
use("grid_sampler_3d", lambda op, x, g: op(x, g, 0, 1, True), noise(1, 2, 4, 5, 3), noise(1, 2, 3, 2, 3) * 0.7, tolerance=1e-5)

for rank in (1, 2, 3):
    image, kernel, stride = noise(2, 4, *[7, 6, 5][:rank]), noise(6, 2, *[3, 2, 3][:rank]), [2, 1, 2][:rank]
    use(f"conv{rank}d", lambda op, x, w, b, s=stride: op(x, w, b, s, [1], [1], 2), image, kernel, reals(6), static_only=True, tolerance=1e-5)
    use(f"conv{rank}d.padding", lambda op, x, w, b: (op(x, w, b, [1], "same", [2], 2), op(x, w, None, [2], "valid", [1], 2)), image, kernel, reals(6), static_only=True, tolerance=1e-5)
    use(f"conv{rank}d", lambda op, x, w, b: op(x, w, b, [1], [0], [1], 2), image[0], kernel, reals(6), label="/unbatched", static_only=True, tolerance=1e-5)
    back = noise(4, 3, *[3, 4, 2][:rank])
    up = f"conv_transpose{rank}d" + ("" if rank == 1 else ".input")
    use(up, lambda op, x, w, b, r=rank: op(x, w, b, [2] * r, [1] * r, [1] * r, 2, [2] * r), image, back, reals(6), static_only=True, tolerance=1e-5)
    use(up, lambda op, x, w, b: op(x, w, None, [3], [0], [2]) + b[0], image[0], back, reals(6), label="/unbatched", static_only=True, tolerance=1e-5)
    use("convolution", lambda op, x, w, b, r=rank: op(x, w, b, [2] * r, [1] * r, [1] * r, True, [1] * r, 2), image, back, reals(6), label=f"/up {rank}", static_only=True, tolerance=1e-5)
    use("convolution", lambda op, x, w, b, r=rank: op(x, w, b, [2] * r, [1] * r, [1] * r, False, [0] * r, 2), image, kernel, reals(6), label=f"/down {rank}", static_only=True, tolerance=1e-5)

for rank, sizes in ((1, (9,)), (2, (9, 8)), (3, (6, 7, 5))):
    images = noise(2, 3, *sizes)
    use(f"adaptive_max_pool{rank}d", lambda op, x, r=rank: (op(x, [1] * r)[0], op(x, [4] * r)[0], op(x[0], [3] * r)[0]), images)
for smooth in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    use(smooth, lambda op, x: (op(x, [5, 4], False), op(x, [12, 3], False), op(x, [4, 7], False, 0.5, 0.5)), noise(2, 3, 9, 14), tolerance=1e-5, static_only=True)
    use(f"{smooth}.vec", lambda op, x: (op(x, [5, 4], False, None), op(x, None, False, [0.5, 1.5])), noise(2, 3, 8, 14), tolerance=1e-5, static_only=True)
    use(f"{smooth}.vec", lambda op, x: op(x, None, False, [0.5, 1.5]), noise(2, 3, 8, 14), label="/scales", tolerance=1e-5)
use("col2im", lambda op, x: (op(x, [5, 8], [2, 3], [1, 2], [1, 0], [2, 1]), op(x[0], [7, 6], [2, 3], [1, 1], [0, 0], [2, 1])), noise(2, 12, 12), static_only=True)
use("col2im", lambda op, x: op(x, [4, x.shape[2] + 2], [4, 3], [1, 1], [0, 0], [1, 1]), noise(2, 24, 7), label="/open")
use("max_unpool2d", lambda op, x: op(*aten.max_pool2d_with_indices(x, [2, 2]), [6, 8]), noise(2, 3, 6, 8), static_only=True)
use("max_unpool2d", lambda op, x: op(*aten.max_pool2d_with_indices(x[0], [2, 2]), [x.shape[2], x.shape[3]]), noise(2, 3, 6, 9), label="/unbatched")
use("max_unpool3d", lambda op, x: op(*aten.max_pool3d_with_indices(x, [2, 2, 2]), [4, 6, 8], [2, 2, 2], [0, 0, 0]), noise(2, 3, 4, 6, 8), static_only=True)

BAGS = (noise(7, 4), torch.tensor([1, 0, 6, 3, 3, 5, 2, 2, 0]), torch.tensor([0, 3, 3, 8]))
for bag in "embedding_bag _embedding_bag _embedding_bag_forward_only".split():
    for mode in range(3):
        use(bag, lambda op, w, i, o, mode=mode: op(w, i, o, False, mode)[0], *BAGS, label=f"/{mode}")
    use(bag, lambda op, w, i, o, s: op(w, i, o, False, 0, False, s)[0], *BAGS, positive(9), label="/weighted")
    use(bag, lambda op, w, i: op(w, i, torch.tensor([0, 3, 3, 9]), False, 1, False, None, True)[0], *BAGS[:2], label="/last offset")
for mode in range(3):
    use("embedding_bag.padding_idx", lambda op, w, i, o, mode=mode: (op(w, i, o, False, mode, False, None, False, 3)[0], op(w, i, o, False, mode, False, None, False, -1)[0]), *BAGS, label=f"/{mode}")
DEFORMED = deform_conv.operands(groups=2, offset_groups=2, stride=(2, 1), padding=(1, 2))
use("torchvision::deform_conv2d", lambda op, x, o, m, w, b: op(x, w, o, m, b, 2, 1, 1, 2, 1, 1, 2, 2, True), *DEFORMED, tolerance=1e-5, static_only=True)
use("torchvision::deform_conv2d", lambda op, x, o, w, b: op(x, w, o, o, b, 2, 1, 1, 2, 1, 1, 2, 2, False), *DEFORMED[:2], *DEFORMED[3:], label="/no mask", tolerance=1e-5, static_only=True)


def recurrent(overload: str, gates: int, states: int, label: str, layers: int = 1, both: bool = False, batch_first: bool = False, bias: bool = True, **more):
    """x, the states, then the weights as PyTorch orders them."""
    features, hidden, directions = 3, 4, 2 if both else 1
    x, start = noise(2, 5, features) if batch_first else noise(5, 2, features), [noise(layers * directions, 2, hidden) * (i + 1) for i in range(states)]
    weights = []
    for layer in range(layers):
        for _ in range(directions):
            wide = features if layer == 0 else hidden * directions
            weights += [noise(gates * hidden, wide) * 0.5, noise(gates * hidden, hidden) * 0.5]
            weights += [reals(gates * hidden), noise(gates * hidden)] if bias else []

    def call(op, x, *given):
        hx = list(given[:states]) if states == 2 else given[0]
        return op(x, hx, [w.clone() for w in weights], bias, layers, 0.5, False, both, batch_first)

    use(overload, call, x, *start, label=label, tolerance=1e-5, **more)


for overload, gates, states in (("lstm.input", 4, 2), ("gru.input", 3, 1), ("rnn_tanh.input", 1, 1), ("rnn_relu.input", 1, 1)):
    recurrent(overload, gates, states, "")
    recurrent(overload, gates, states, "/both", 2, True, True)
    recurrent(overload, gates, states, "/no bias", 2, False, False, False)
for overload, gates in (("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
    use(overload, lambda op, x, h, w, r, b: (op(x, h, w, r), op(x, h, w, r, b, b)), noise(2, 3), noise(2, 4), noise(4 * gates, 3), noise(4 * gates, 4), noise(4 * gates), tolerance=1e-5, static_only=True)
use("lstm_cell", lambda op, x, h, w, r, b: (*op(x, [h, h * 2], w, r), *op(x, [h, h], w, r, b, b)), noise(2, 3), noise(2, 4), noise(16, 3), noise(16, 4), noise(16), tolerance=1e-5, static_only=True)


class Recurrent(nn.Module):
    """An encoder and a decoder over time, with lengths and batches of any size."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True)
        self.decoder = nn.GRU(10, 4, batch_first=True)
        self.step = nn.LSTMCell(4, 3)

    def forward(self, x):
        y, (h, c) = self.encoder(x)
        z, last = self.decoder(y)
        h2, c2 = self.step(last[0])
        return z, h + c, h2 * c2, self.encoder(x[0])[0]


CASES.append(Case("recurrent network", Recurrent, lambda: [noise(3, 7, 6)], 1e-5, names=["x"]))



class Small(nn.Module):
    """What GANs and U-Nets are made of."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.up = nn.Sequential(nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.GroupNorm(2, 4), nn.LeakyReLU(0.2, inplace=True), nn.Upsample(scale_factor=2, mode="bilinear"), nn.PixelShuffle(2))

    def forward(self, x):
        return torch.tanh(self.up(self.down(x)))


CASES.append(Case("network", Small, lambda: [noise(2, 3, 12, 10)], 1e-5, names=["x"]))

"""Networks with recurrences, loops and scans, as small PyTorch modules: what `networks.py` is to networks that upsample."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from networks import Family, noise, trained_like


# --- EnCodec's decoder in small (Défossez et al. 2022): convolution, two residual LSTM layers, transposed convolutions.
class ResidualLstm(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.lstm = nn.LSTM(channels, channels, 2)

    def forward(self, x):
        x = x.permute(2, 0, 1)
        y, _ = self.lstm(x)
        return (y + x).permute(1, 2, 0)


class SeanetDecoder(nn.Module):
    def __init__(self, channels: int = 32):
        super().__init__()
        self.first = nn.Conv1d(16, channels, 7, padding=3)
        self.recurrence = ResidualLstm(channels)
        self.up = nn.ModuleList([nn.ConvTranspose1d(channels, channels // 2, 8, 4, 2), nn.ConvTranspose1d(channels // 2, channels // 4, 4, 2, 1)])
        self.last = nn.Conv1d(channels // 4, 1, 7, padding=3)

    def forward(self, x):
        x = self.recurrence(self.first(x))
        for up in self.up:
            x = up(F.elu(x))
        return self.last(F.elu(x))


def seanet() -> Family:
    return Family(trained_like(SeanetDecoder(), 1), {"x": noise(2, 16, 20)}, {"x": {0: "N", 2: "T"}}, {"x": noise(3, 16, 33, seed=2)})


# --- A tagger: both directions, batch first, GRU.
class GruTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(12, 20, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(40, 5)

    def forward(self, x):
        y, h = self.gru(x)
        return torch.cat([self.head(y), self.head(torch.cat([h[-2], h[-1]], 1))[:, None]], 1)


def gru_tagger() -> Family:
    return Family(trained_like(GruTagger(), 2), {"x": noise(3, 9, 12)}, {"x": {0: "N", 1: "T"}}, {"x": noise(1, 17, 12, seed=3)})


# --- An Elman network with relu and one with tanh, and an LSTM with a given state.
class Elman(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.RNN(6, 11, nonlinearity="relu")
        self.tanh = nn.RNN(11, 11)
        self.lstm = nn.LSTM(11, 7)

    def forward(self, x):
        y, h = self.relu(x)
        z, _ = self.tanh(y)
        w, (a, b) = self.lstm(z, (h[:, :, :7], h[:, :, 4:]))
        return w + a * b


def elman() -> Family:
    return Family(trained_like(Elman(), 3), {"x": noise(8, 2, 6)}, {"x": {0: "T", 1: "N"}}, {"x": noise(5, 4, 6, seed=5)})


RECURRENT = {"seanet": seanet, "gru_tagger": gru_tagger, "elman": elman}


# --- Loops that the exporters keep: scripted ones become Loop, the higher-order operators Loop and Scan.
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x, n: int):
        y = x
        for _ in range(n):
            y = torch.tanh(self.linear(y)) + x
        return y


class Until(nn.Module):
    def forward(self, x):
        while bool(x.abs().sum() < 100.0):
            x = x * 1.5
        return x


class Growing(nn.Module):
    def forward(self, x):
        y = x[:1]
        for i in range(x.size(0)):
            y = torch.cat([y, torch.tanh(x[i : i + 1] * y.sum())], 0)
        return y


class WhileLoop(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda i, y: i < 20, lambda i, y: (i + 1, torch.sin(y) + 0.1), (torch.tensor(0), x))[1]


class Scanned(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.scan import scan

        def step(h, entry):
            h = torch.tanh(h + entry)
            return h, h * 2

        return scan(step, torch.zeros(4), x)[1]


SCRIPTED = {
    "counted": (Counted, [(noise(3, 6), 3), (noise(2, 6), 0), (noise(5, 6), 30)]),
    "until": (Until, [(noise(3, 6),), (noise(5, 6) * 50,)]),
    "growing": (Growing, [(noise(3, 6),), (noise(6, 6),), (noise(1, 6),)]),
}
TRACED = {"while_loop": (WhileLoop, noise(3, 6)), "scan": (Scanned, noise(7, 4))}

#!/usr/bin/env python3
"""Writes examples/kernels/*.jsonl: kernels with expected values that NumPy computes in float64.

Usage: make_kernels.py FOLDER. Needs NumPy; Quern itself does not.
"""
import json
import os
import sys

import numpy as np

NUMPY = {"bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int32": np.int32, "int64": np.int64,
         "float16": np.float16, "float32": np.float32}
EPS = {"float16": 2.0**-10, "float32": 2.0**-23}
SAMPLES = 32


def view(shape, strides=None, offset=0, mask=None):
    if strides is None:
        strides, n = [], 1
        for dim in reversed(shape):
            strides.insert(0, n)
            n *= dim
    return {"shape": list(shape), "strides": list(strides), "offset": offset, "mask": mask}


class Kernel:
    def __init__(self, name, positive=False):
        self.name = name
        self.nodes, self.outputs, self.buffers, self.vars = [], [], [], []
        self.positive = positive
        self.flops = 0

    def buffer(self, dtype, size):
        self.buffers.append({"dtype": dtype, "size": size})
        return len(self.buffers) - 1

    def node(self, **fields):
        self.nodes.append(fields)
        return len(self.nodes) - 1

    def load(self, buffer, *views):
        return self.node(op="LOAD", buffer=buffer, dtype=self.buffers[buffer]["dtype"], views=list(views))

    def const(self, value, dtype, shape):
        return self.node(op="CONST", value=value, dtype=dtype, views=[view(shape, [0] * len(shape))])

    def op(self, name, *src, **fields):
        return self.node(op=name, src=list(src), **fields)

    def store(self, buffer, src, *views):
        self.outputs.append(self.node(op="STORE", buffer=buffer, dtype=self.buffers[buffer]["dtype"],
                                      views=list(views), src=[src]))

    def data(self, number):
        """The input of buffer `number`: the formula of kernel files."""
        size, dtype = self.buffers[number]["size"], self.buffers[number]["dtype"]
        with np.errstate(over="ignore"):
            z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.arange(size, dtype=np.uint64)
            z += np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            h = ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).astype(np.int64)
        if dtype.startswith("float"):
            return ((h % 16 + 1) if self.positive else (h % 32 - 16)) / 8.0
        if dtype == "bool":
            return (h & 1).astype(np.bool_)
        if dtype.startswith("int") and not self.positive:
            return (h % 16 - 8).astype(NUMPY[dtype])
        return (h % 16).astype(NUMPY[dtype])

    def record(self, expected, flops, slack=64.0, scale=0.01):
        """`expected`: an array for each output, the whole buffer, in float64 or exact integers. Float
        values may be off by `slack` units of rounding of themselves, or of `scale` if that is more."""
        expect = []
        for buffer, values in enumerate(expected):
            values = np.asarray(values).reshape(-1)
            size, dtype = self.buffers[buffer]["size"], self.buffers[buffer]["dtype"]
            assert values.size == size, (self.name, values.size, size)
            at = sorted({round(i * (size - 1) / max(1, SAMPLES - 1)) for i in range(SAMPLES)})
            if dtype in EPS:
                value = [float(values[i]) for i in at]
                tol = [slack * EPS[dtype] * max(abs(v), scale) for v in value]
            else:
                value, tol = [int(values[i]) for i in at], [0] * len(at)
            expect.append({"buffer": buffer, "at": at, "value": value, "tol": tol})
        sizes = {name: np.dtype(kind).itemsize for name, kind in NUMPY.items()}
        return {"id": self.name, "nodes": self.nodes, "outputs": self.outputs, "buffers": self.buffers,
                "vars": self.vars, "input": "positive" if self.positive else "signed", "flops": flops,
                "bytes": sum(b["size"] * sizes[b["dtype"]] for b in self.buffers), "expect": expect}


def softmax(rows=64, columns=256):
    k = Kernel("softmax")
    out, x = k.buffer("float32", rows * columns), k.buffer("float32", rows * columns)
    shape = [rows, columns]
    row = k.load(x, view(shape))
    biggest = k.op("EXPAND", k.op("MAX_REDUCE", row, axis=[1]), shape=shape)
    scaled = k.op("MUL", k.op("SUB", row, biggest), k.const(1.4426950408889634, "float32", shape))
    e = k.op("EXP2", scaled)
    k.store(out, k.op("DIV", e, k.op("EXPAND", k.op("SUM", e, axis=[1]), shape=shape)), view(shape))
    d = k.data(x).reshape(shape)
    p = np.exp(d - d.max(1, keepdims=True))
    return k.record([p / p.sum(1, keepdims=True)], 7 * rows * columns)


def layer_norm(rows=32, columns=768):
    k = Kernel("layer_norm")
    out, x = k.buffer("float32", rows * columns), k.buffer("float32", rows * columns)
    gain, bias = k.buffer("float32", columns), k.buffer("float32", columns)
    shape, column = [rows, columns], [rows, 1]
    row = k.load(x, view(shape))
    count = k.const(1.0 / columns, "float32", column)
    mean = k.op("MUL", k.op("SUM", row, axis=[1]), count)
    centered = k.op("SUB", row, k.op("EXPAND", mean, shape=shape))
    variance = k.op("MUL", k.op("SUM", k.op("MUL", centered, centered), axis=[1]), count)
    deviation = k.op("SQRT", k.op("ADD", variance, k.const(1e-5, "float32", column)))
    normal = k.op("DIV", centered, k.op("EXPAND", deviation, shape=shape))
    scaled = k.op("MUL", normal, k.load(gain, view(shape, [0, 1])))
    k.store(out, k.op("ADD", scaled, k.load(bias, view(shape, [0, 1]))), view(shape))
    d = k.data(x).reshape(shape)
    c = d - d.mean(1, keepdims=True)
    y = c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * k.data(gain) + k.data(bias)
    return k.record([y], 7 * rows * columns + 4 * rows, scale=1.0)


def matmul(name, m, n, depth, dtype="float32", accumulator=None):
    k = Kernel(name)
    wide = accumulator or dtype
    out, a, b = k.buffer(wide, m * n), k.buffer(dtype, m * depth), k.buffer(dtype, depth * n)
    shape = [m, n, depth]
    x, y = k.load(a, view(shape, [depth, 0, 1])), k.load(b, view(shape, [0, 1, n]))
    if wide != dtype:
        x, y = k.op("CAST", x, dtype=wide), k.op("CAST", y, dtype=wide)
    k.store(out, k.op("SUM", k.op("MUL", x, y), axis=[2]), view([m, n, 1]))
    kind = np.float64 if wide.startswith("float") else np.int64
    c = k.data(a).reshape(m, depth).astype(kind) @ k.data(b).reshape(depth, n).astype(kind)
    return k.record([c], 2 * m * n * depth)


def gelu(size=4096):
    k = Kernel("gelu")
    out, x = k.buffer("float32", size), k.buffer("float32", size)
    one = lambda value: k.const(value, "float32", [size])
    v = k.load(x, view([size]))
    # x * sigmoid(1.702 x), in base 2.
    e = k.op("EXP2", k.op("MUL", v, one(-1.702 * 1.4426950408889634)))
    k.store(out, k.op("DIV", v, k.op("ADD", e, one(1.0))), view([size]))
    d = k.data(x)
    return k.record([d / (1 + np.exp(-1.702 * d))], 4 * size)


def convolution(channels=8, size=32, filters=8):
    """3 x 3, zero padding: one view pads, the next one slides a window over it."""
    k = Kernel("convolution")
    out, x = k.buffer("float32", filters * size * size), k.buffer("float32", channels * size * size)
    w = k.buffer("float32", filters * channels * 9)
    padded = size + 2
    box = view([channels, padded, padded], [size * size, size, 1], -size - 1,
               [[0, channels], [1, size + 1], [1, size + 1]])
    shape = [filters, size, size, channels, 3, 3]
    window = view(shape, [0, padded, 1, padded * padded, padded, 1])
    product = k.op("MUL", k.load(x, box, window), k.load(w, view(shape, [channels * 9, 0, 0, 9, 3, 1])))
    k.store(out, k.op("SUM", product, axis=[3, 4, 5]), view([filters, size, size, 1, 1, 1]))
    d = np.pad(k.data(x).reshape(channels, size, size), ((0, 0), (1, 1), (1, 1)))
    f = k.data(w).reshape(filters, channels, 3, 3)
    y = sum(np.einsum("fc,cyx->fyx", f[:, :, i, j], d[:, i:i + size, j:j + size])
            for i in range(3) for j in range(3))
    return k.record([y], 2 * filters * size * size * channels * 9)


def fir_filter(samples=4096, taps=31):
    """An audio filter: the window runs backwards over the taps."""
    k = Kernel("fir_filter")
    out, x, h = k.buffer("float32", samples), k.buffer("float32", samples + taps - 1), k.buffer("float32", taps)
    shape = [samples, taps]
    product = k.op("MUL", k.load(x, view(shape, [1, 1])), k.load(h, view(shape, [0, -1], taps - 1)))
    k.store(out, k.op("SUM", product, axis=[1]), view([samples, 1]))
    return k.record([np.convolve(k.data(x), k.data(h), "valid")], 2 * samples * taps)


def grayscale(height=48, width=64):
    """Interleaved 8-bit RGB to gray in integers."""
    k = Kernel("grayscale")
    n = height * width
    out, rgb = k.buffer("uint8", n), k.buffer("uint8", 3 * n)
    total = None
    for channel, weight in enumerate((77, 150, 29)):
        c = k.op("CAST", k.load(rgb, view([n], [3], channel)), dtype="int32")
        c = k.op("MUL", c, k.const(weight, "int32", [n]))
        total = c if total is None else k.op("ADD", total, c)
    k.store(out, k.op("CAST", k.op("DIV", total, k.const(256, "int32", [n])), dtype="uint8"), view([n]))
    d = k.data(rgb).reshape(n, 3).astype(np.int64)
    return k.record([(d * [77, 150, 29]).sum(1) // 256], 6 * n)


def box_blur(height=40, width=56):
    k = Kernel("box_blur")
    out, x = k.buffer("uint8", height * width), k.buffer("uint8", (height + 2) * (width + 2))
    shape = [height, width, 3, 3]
    window = k.op("CAST", k.load(x, view(shape, [width + 2, 1, width + 2, 1])), dtype="int32")
    mean = k.op("DIV", k.op("SUM", window, axis=[2, 3]), k.const(9, "int32", [height, width, 1, 1]))
    k.store(out, k.op("CAST", mean, dtype="uint8"), view([height, width, 1, 1]))
    d = k.data(x).reshape(height + 2, width + 2).astype(np.int64)
    y = sum(d[i:i + height, j:j + width] for i in range(3) for j in range(3)) // 9
    return k.record([y], 9 * height * width + height * width)


def running_sum(n=200):
    """Each output sums what stands up to it: a view of stride 0 under a triangular mask."""
    k = Kernel("running_sum")
    out, x = k.buffer("int64", n), k.buffer("int64", n)
    # Row i of [n, n] reads x[i + j - n + 1], where that is not negative.
    padded = view([2 * n - 1], [1], -(n - 1), [[n - 1, 2 * n - 1]])
    k.store(out, k.op("SUM", k.load(x, padded, view([n, n], [1, 1])), axis=[1]), view([n, 1]))
    return k.record([np.cumsum(k.data(x))], n * n)


def minimum_and_maximum(rows=100, columns=33):
    k = Kernel("minimum_and_maximum")
    low, high, x = (k.buffer("int32", rows), k.buffer("int32", rows), k.buffer("int32", rows * columns))
    v = k.load(x, view([rows, columns]))
    negative = k.op("MAX_REDUCE", k.op("NEG", v), axis=[1])
    k.store(low, k.op("NEG", negative), view([rows, 1]))
    k.store(high, k.op("MAX_REDUCE", v, axis=[1]), view([rows, 1]))
    d = k.data(x).reshape(rows, columns)
    return k.record([d.min(1), d.max(1)], 3 * rows * columns + rows)


def leapfrog(n=1000):
    """Positions and velocities of oscillators, both updated in place."""
    k = Kernel("leapfrog")
    position, velocity = k.buffer("float32", n), k.buffer("float32", n)
    step = k.const(0.125, "float32", [n])
    p, v = k.load(position, view([n])), k.load(velocity, view([n]))
    faster = k.op("SUB", v, k.op("MUL", p, step))
    k.store(position, k.op("ADD", p, k.op("MUL", faster, step)), view([n]))
    k.store(velocity, faster, view([n]))
    d, e = k.data(position), k.data(velocity)
    f = e - d * 0.125
    return k.record([d + f * 0.125, f], 4 * n)


def attention_scores(heads=4, width=16, longest=64, value=37):
    """Dot products of a query with the keys seen so far; how many they are is a variable."""
    k = Kernel("attention_scores")
    k.vars.append({"name": "length", "min": 1, "max": longest, "value": value})
    out, q, keys = (k.buffer("float32", heads * longest), k.buffer("float32", heads * width),
                    k.buffer("float32", longest * heads * width))
    shape = [heads, "length", width]
    a = k.load(q, {"shape": shape, "strides": [width, 0, 1], "offset": 0, "mask": None})
    b = k.load(keys, {"shape": shape, "strides": [width, heads * width, 1], "offset": 0, "mask": None})
    dots = k.op("SUM", k.op("MUL", a, b), axis=[2])
    scale = k.node(op="CONST", value=width**-0.5, dtype="float32",
                   views=[{"shape": [heads, "length", 1], "strides": [0, 0, 0], "offset": 0, "mask": None}])
    k.store(out, k.op("MUL", dots, scale),
            {"shape": [heads, "length", 1], "strides": [longest, 1, 0], "offset": 0, "mask": None})
    d = k.data(keys).reshape(longest, heads, width)[:value]
    scores = np.einsum("hw,lhw->hl", k.data(q).reshape(heads, width), d) / 4
    y = k.data(out).reshape(heads, longest).copy()  # what is not written stays
    y[:, :value] = scores
    return k.record([y], (2 * width + 1) * heads * value)


def half_rms_norm(rows=16, columns=128):
    k = Kernel("half_rms_norm", positive=True)
    out, x = k.buffer("float16", rows * columns), k.buffer("float16", rows * columns)
    shape = [rows, columns]
    v = k.op("CAST", k.load(x, view(shape)), dtype="float32")
    mean = k.op("MUL", k.op("SUM", k.op("MUL", v, v), axis=[1]), k.const(1.0 / columns, "float32", [rows, 1]))
    root = k.op("SQRT", k.op("ADD", mean, k.const(1e-6, "float32", [rows, 1])))
    y = k.op("DIV", v, k.op("EXPAND", root, shape=shape))
    k.store(out, k.op("CAST", y, dtype="float16"), view(shape))
    d = k.data(x).reshape(shape)
    return k.record([d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-6)], 3 * rows * columns + 3 * rows, 4)


def transpose(rows=60, columns=100):
    k = Kernel("transpose")
    out, x = k.buffer("float32", rows * columns), k.buffer("float32", rows * columns)
    k.store(out, k.load(x, view([columns, rows], [1, columns])), view([columns, rows]))
    return k.record([k.data(x).reshape(rows, columns).T], 0)


FILES = {
    "inference": [softmax, layer_norm, lambda: matmul("matmul", 96, 80, 64), gelu, convolution, attention_scores,
                  half_rms_norm, lambda: matmul("int8_matmul", 32, 32, 64, "int8", "int32")],
    "signals": [fir_filter, grayscale, box_blur, running_sum],
    "arrays": [minimum_and_maximum, leapfrog, transpose],
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, kernels in FILES.items():
        with open(os.path.join(sys.argv[1], name + ".jsonl"), "w", encoding="ascii") as out:
            for kernel in kernels:
                out.write(json.dumps(kernel(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

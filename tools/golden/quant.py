"""Goldens of the quantised formats: the results of mlx.core for difficult groups.

Made with mlx 0.32.4 (CPU) and numpy. Usage: quant.py OUT_FOLDER
Writes affine_<type>.safetensors: for each width and group size the values, and the words, scales, biases and values
that quantize and dequantize gave; and minifloat.safetensors: words and scales of mxfp4, mxfp8 and nvfp4 with their
F32 values.
"""

import pathlib
import sys

import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)


def awkward_groups(rng, group):
    """Rows of one group each, with every kind of content that the encoder handles specially."""
    normal = rng.normal(size=(6, group))
    steps = np.arange(group) % 16
    return np.concatenate(
        [
            normal,
            -np.abs(normal[:2]),  # all negative
            np.abs(normal[:2]),  # all positive
            normal[:1] * 1e-9,  # below the smallest scale
            normal[:1] * 1e-4,
            normal[:1] * 1e4,
            np.zeros((1, group)),
            np.full((1, group), 0.75),  # constants of either sign
            np.full((1, group), -3.0),
            steps[None] / 2.0,  # halves: many ties
            steps[None] - 7.5,
            (steps[None] - 8) * 0.25,
            np.where(np.arange(group) == 5, 100.0, 0.01)[None],  # one outlier
            np.where(np.arange(group) == 7, -1.0, 1.0)[None],  # equal extremes
        ]
    ).astype(np.float32)


def affine(folder, name, dtype):
    rng = np.random.default_rng(7)
    tensors = {}
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            values = mx.array(awkward_groups(rng, group)).astype(dtype)
            words, scales, biases = mx.quantize(values, group_size=group, bits=bits)
            key = f"{bits}.{group}"
            tensors[f"{key}.values"] = values
            tensors[f"{key}.words"] = words
            tensors[f"{key}.scales"] = scales
            tensors[f"{key}.biases"] = biases
            tensors[f"{key}.decoded"] = mx.dequantize(words, scales, biases, group_size=group, bits=bits)
    mx.save_safetensors(str(folder / f"affine_{name}.safetensors"), tensors, metadata={"format": "mlx"})


def minifloat(folder):
    """Every code under many scales; E8M0 stops at 250, where no product overflows."""
    tensors = {}
    for mode, bits, group, scale_codes in (
        ("mxfp4", 4, 32, np.arange(0, 251)),
        ("mxfp8", 8, 32, np.arange(0, 240)),
        ("nvfp4", 4, 16, np.arange(0, 124)),
    ):
        rows = len(scale_codes)
        per_word = 32 // bits
        codes = (np.arange(rows * group, dtype=np.uint64) % (1 << bits)).astype(np.uint32)
        if mode == "mxfp8":
            codes[codes % 128 == 127] = 0  # NaN has many bit patterns
        shifted = codes.reshape(rows, group // per_word, per_word) << (np.arange(per_word, dtype=np.uint32) * bits)
        words = mx.array(np.bitwise_or.reduce(shifted, axis=-1).astype(np.uint32))
        scales = mx.array(scale_codes.astype(np.uint8)[:, None])
        tensors[f"{mode}.words"] = words
        tensors[f"{mode}.scales"] = scales
        tensors[f"{mode}.decoded"] = mx.dequantize(words, scales, mode=mode, dtype=mx.float32)
    mx.save_safetensors(str(folder / "minifloat.safetensors"), tensors, metadata={"format": "mlx"})


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, dtype in (("f32", mx.float32), ("bf16", mx.bfloat16), ("f16", mx.float16)):
        affine(folder, name, dtype)
    minifloat(folder)


if __name__ == "__main__":
    main()

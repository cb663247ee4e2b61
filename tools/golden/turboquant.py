"""Makes op files of the rotation and the TurboQuant cache for tests/data/ops from the formulas, in numpy float64.

Nothing is shared with the library: the rotation is a dense Sylvester matrix, levels come from Lloyd's conditions solved
by shooting (each cell decides the next, the last one closes the system), codes from the nearest level by distance, bits
from numpy.packbits, the softmax from complete rows. Made with numpy 2.4.6, safetensors 0.8.0.
Usage: python turboquant.py OUT_FOLDER
"""

import functools
import math
import pathlib
import sys

import numpy as np
from safetensors.numpy import save_file


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def tail(x):
    return math.erfc(x / math.sqrt(2)) / 2


def cell_end(low, level):
    """The end of the cell from `low` whose mean is `level`, or None if even the infinite one has a lower mean."""
    if density(low) / tail(low) <= level:
        return None
    a, b = level, level + 10
    for _ in range(200):
        middle = (a + b) / 2
        mean = (density(low) - density(middle)) / (tail(low) - tail(middle))
        a, b = (middle, b) if mean < level else (a, middle)
    return b


def shoot(first, count):
    """Levels from the first one on; fewer than count + 1 if the cells exceed the tail."""
    levels, low = [first], 0.0
    while len(levels) <= count:
        low = cell_end(low, levels[-1])
        if low is None:
            break
        levels.append(2 * low - levels[-1])
    return levels


@functools.cache
def codebook(bits):
    half = 2 ** (bits - 1)
    low, high = 0.0, 1.0  # with a first level that is too small another level fits, with one too large some are missing
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if len(shoot(middle, half)) > half else (low, middle)
    positive = np.array(shoot(low, half)[:half])
    return np.concatenate([-positive[::-1], positive])


def hadamard_matrix(width):
    matrix = np.ones((1, 1))
    while len(matrix) < width:
        matrix = np.kron(np.array([[1, 1], [1, -1]]), matrix)
    return matrix / math.sqrt(width)


def sign_factors(signs, width):
    return np.ones(width) if signs is None else 1.0 - 2.0 * np.unpackbits(signs, bitorder="little")


def rotate(x, signs):
    return (x.astype(np.float64) * sign_factors(signs, x.shape[-1])) @ hadamard_matrix(x.shape[-1])


def rotate_back(x, signs):
    return x @ hadamard_matrix(x.shape[-1]) * sign_factors(signs, x.shape[-1])


def pack(codes, bits):
    planes = (codes[..., None] >> np.arange(bits)) & 1
    return np.packbits(planes.reshape(*codes.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")


def unpack(packed, bits):
    stream = np.unpackbits(packed, axis=-1, bitorder="little")
    planes = stream.reshape(*packed.shape[:-1], -1, bits).astype(np.int64)
    return (planes << np.arange(bits)).sum(-1)


def encode(x, signs, bits, norm):
    """[T,H,D] to codes [H,T,bytes] and norms [H,T]."""
    width = x.shape[-1]
    lengths = np.linalg.norm(x.astype(np.float64), axis=-1)
    unit = rotate(x, signs) * math.sqrt(width) / np.where(lengths == 0, 1, lengths)[..., None]
    levels = codebook(bits)
    codes = np.abs(unit[..., None] - levels).argmin(-1)
    if norm == "matched":
        lengths = lengths * math.sqrt(width) / np.linalg.norm(levels[codes], axis=-1)
    return pack(codes, bits).swapaxes(0, 1), lengths.T.astype(np.float32)


def decode_rotated(packed, norms, bits):
    levels = codebook(bits)[unpack(packed, bits)]
    return levels * norms[..., None].astype(np.float64) / math.sqrt(levels.shape[-1])


def attend(q, keys, values, scale, window, length):
    """q [T,H,D], keys and values [KH,S,D] in logical order, all rotated."""
    tokens, heads = q.shape[:2]
    out = np.zeros(q.shape)
    for i in range(tokens):
        end = length - tokens + i + 1
        begin = max(0, end - window) if window else 0
        for h in range(heads):
            kv = h // (heads // len(keys))
            scores = scale * (keys[kv, begin:end] @ q[i, h])
            weights = np.exp(scores - scores.max())
            out[i, h] = weights / weights.sum() @ values[kv, begin:end]
    return out


def save(folder, op, case, inputs, expected, tolerance, **attributes):
    tensors = {name: value for name, value in inputs.items() if value is not None}
    tensors |= {f"expect.{name}": value for name, value in expected.items()}
    metadata = {f"attr.{name}": str(value) for name, value in attributes.items()} | {"op": op, "tolerance": str(tolerance)}
    tensors = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    save_file(tensors, folder / f"{op}_{case}.safetensors", metadata)


def random_signs(random, width):
    return random.integers(0, 256, width // 8, dtype=np.uint8)


def hadamard(folder, random):
    x = random.standard_normal((2, 3, 256), dtype=np.float32)
    signs = random_signs(random, 256)
    save(folder, "hadamard", "forward", {"x": x, "signs": signs}, {"out": rotate(x, signs).astype(np.float32)}, 1e-6)
    inverse = rotate_back(x.astype(np.float64), signs).astype(np.float32)
    save(folder, "hadamard", "inverse", {"x": x, "signs": signs}, {"out": inverse}, 1e-6, inverse=1)
    x = random.standard_normal((3, 32), dtype=np.float32)
    save(folder, "hadamard", "no_signs", {"x": x}, {"out": rotate(x, None).astype(np.float32)}, 1e-6)


def codec(folder, random, bits, width, norm, with_signs):
    x = random.standard_normal((4, 2, width), dtype=np.float32) * 3
    signs = random_signs(random, width) if with_signs else None
    codes, norms = encode(x, signs, bits, norm)
    inputs = {"x": x, "signs": signs}
    save(folder, "turboquant_encode", f"{bits}bit", inputs, {"codes": codes, "norms": norms}, 1e-6, bits=bits, norm=norm)
    out = decode_rotated(codes, norms, bits).swapaxes(0, 1)
    out = out if not with_signs else rotate_back(out, signs)
    inputs = {"codes": codes, "norms": norms, "signs": signs}
    expected = {"out": out.astype(np.float32)}
    save(folder, "turboquant_decode", f"{bits}bit", inputs, expected, 1e-6, bits=bits, rotated=int(not with_signs))


def append(folder, random):
    """Eleven tokens into a ring of seven slots that starts at slot 5."""
    tokens, heads, width, slots, start = 11, 2, 64, 7, 12
    k, v = (random.standard_normal((tokens, heads, width), dtype=np.float32) for _ in range(2))
    signs = random_signs(random, width)
    inputs, expected = {"k": k, "v": v, "signs": signs}, {}
    for name, x, bits in (("k", k, 8), ("v", v, 3)):
        codes, norms = encode(x, signs, bits, "matched")
        cache = random.integers(0, 256, (heads, slots, width * bits // 8), dtype=np.uint8)
        cache_norms = np.ones((heads, slots), np.float32)
        inputs |= {f"{name}_codes": cache.copy(), f"{name}_norms": cache_norms.copy()}
        for i in range(tokens):
            cache[:, (start + i) % slots] = codes[:, i]
            cache_norms[:, (start + i) % slots] = norms[:, i]
        expected |= {f"{name}_codes": cache, f"{name}_norms": cache_norms}
    save(folder, "turboquant_append", "ring", inputs, expected, 1e-6, k_bits=8, v_bits=3, norm="matched", start=start)


def attention(folder, random, case, tokens, heads, kv_heads, width, slots, length, ring, window, bits, rotated, signed):
    signs = random_signs(random, width) if signed else None
    q = random.standard_normal((tokens, heads, width), dtype=np.float32)
    inputs = {"q": q, "signs": signs}
    logical = []
    for name, width_bits in zip("kv", bits):
        codes = random.integers(0, 256, (kv_heads, slots, width * width_bits // 8), dtype=np.uint8)
        norms = random.uniform(0.5, 1.5, (kv_heads, slots)).astype(np.float32) * np.float32(math.sqrt(width))
        norms[:, length:] = np.nan  # rows that no query sees
        inputs |= {f"{name}_codes": codes, f"{name}_norms": norms}
        logical.append(np.roll(decode_rotated(codes, norms, width_bits), -ring, axis=1))
    scale = 2 / math.sqrt(width)
    out = attend(q.astype(np.float64) if rotated else rotate(q, signs), *logical, scale, window, length)
    out = out if rotated else rotate_back(out, signs)
    attributes = {"k_bits": bits[0], "v_bits": bits[1], "length": length, "ring_start": ring, "window": window}
    attributes |= {"scale": scale, "rotated": int(rotated)}
    save(folder, "turboquant_attention", case, inputs, {"out": out.astype(np.float32)}, 5e-6, **attributes)


def main():
    random = np.random.default_rng(20250101)
    folder = pathlib.Path(sys.argv[1])
    hadamard(folder, random)
    for bits, width, norm, with_signs in (
        (2, 32, "plain", True),
        (3, 64, "matched", True),
        (4, 256, "matched", True),
        (5, 128, "plain", False),
        (6, 512, "matched", True),
        (8, 128, "plain", True),
    ):
        codec(folder, random, bits, width, norm, with_signs)
    append(folder, random)
    attention(folder, random, "rotated_4bit", 1, 8, 2, 256, 80, 70, 0, 0, (4, 4), True, False)
    attention(folder, random, "ring_window", 5, 4, 2, 64, 48, 48, 13, 21, (8, 3), False, True)
    attention(folder, random, "long", 3, 6, 2, 32, 640, 610, 0, 0, (5, 6), False, True)


if __name__ == "__main__":
    main()

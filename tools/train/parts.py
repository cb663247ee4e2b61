"""Stores a trained model as a few small files: BF16 values with compressed high bytes, split into parts.

Vectors (norms, decay rates, router biases) are kept in F32: they are small, and mlx-lm keeps some of them in F32.
"""

import io
import json
import zlib
from pathlib import Path

import torch

PART = 15 << 20
SMALL = 8192


def save_parts(state: dict, folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    small = {k: v.float().cpu() for k, v in state.items() if v.numel() <= SMALL}
    large = {k: v.bfloat16().cpu() for k, v in state.items() if v.numel() > SMALL}
    flat = torch.cat([v.flatten() for v in large.values()]).view(torch.uint8).view(-1, 2)
    low, high = flat[:, 0].contiguous().numpy().tobytes(), zlib.compress(
        flat[:, 1].contiguous().numpy().tobytes(), 6
    )
    vectors = io.BytesIO()
    torch.save(small, vectors)
    header = json.dumps(
        {"shapes": {k: list(v.shape) for k, v in large.items()}, "low": len(low), "high": len(high)}
    ).encode()
    blob = len(header).to_bytes(8, "little") + header + low + high + vectors.getvalue()
    for old in folder.glob("part*"):
        old.unlink()
    for i, begin in enumerate(range(0, len(blob), PART)):
        (folder / f"part{i}").write_bytes(blob[begin : begin + PART])


def load_parts(folder: Path) -> dict:
    blob = b"".join((folder / f"part{i}").read_bytes() for i in range(len(list(folder.glob("part*")))))
    start = 8 + int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8:start])
    middle, end = start + header["low"], start + header["low"] + header["high"]
    low = torch.frombuffer(bytearray(blob[start:middle]), dtype=torch.uint8)
    high = torch.frombuffer(bytearray(zlib.decompress(blob[middle:end])), dtype=torch.uint8)
    flat = torch.stack([low, high], 1).contiguous().view(torch.bfloat16).flatten()
    shapes = header["shapes"]
    sizes = [torch.Size(s).numel() for s in shapes.values()]
    state = {k: v.view(shapes[k]) for k, v in zip(shapes, flat.split(sizes))}
    return state | torch.load(io.BytesIO(blob[end:]))

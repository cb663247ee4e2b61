"""Makes tests/data/checkpoint/{hf,mlx}.safetensors and safetensors.json, which says what is in them.

Made with safetensors 0.8.0, torch 2.13.0, mlx 0.32.4. Usage: python safetensors_files.py OUT_FOLDER
"""

import json
import pathlib
import sys

import mlx.core as mx
import numpy as np
import torch
from safetensors.torch import save_file

TORCH = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U64": torch.uint64, "U32": torch.uint32, "U16": torch.uint16, "U8": torch.uint8, "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu,
}
MLX = {
    "F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16, "I64": mx.int64, "I32": mx.int32, "I16": mx.int16,
    "I8": mx.int8, "U64": mx.uint64, "U32": mx.uint32, "U16": mx.uint16, "U8": mx.uint8, "BOOL": mx.bool_,
}


def description(dtype, shape, raw):
    return {"dtype": dtype, "shape": list(shape), "hex": raw.hex()}


def hf_file(folder):
    # Powers of two, exact in every type; as bool all are true.
    values = torch.tensor([[1, 2, 4], [8, 16, 64]], dtype=torch.float32)
    tensors = {f"layer.{name}": values.to(dtype) for name, dtype in TORCH.items()}
    tensors["empty"] = torch.zeros((0, 3), dtype=torch.float32)
    tensors["scalar"] = torch.tensor(7, dtype=torch.int32)
    tensors["naïve.日本"] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    save_file(tensors, folder / "hf.safetensors", metadata={"format": "pt", "note": "a \"quoted\" é"})
    names = {dtype: name for name, dtype in TORCH.items()}
    return {
        key: description(names[t.dtype], t.shape, t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"")
        for key, t in tensors.items()
    }


def mlx_file(folder):
    values = np.array([[1, 2, 4], [8, 16, 64]], dtype=np.float32)
    tensors = {f"layer.{name}": mx.array(values).astype(dtype) for name, dtype in MLX.items()}
    # An odd number of bytes makes the following tensors unaligned; so does mlx's unpadded header.
    tensors["odd"] = mx.array([1, 2, 3], dtype=mx.uint8)
    tensors["scalar"] = mx.array(7, dtype=mx.int32)
    mx.save_safetensors(str(folder / "mlx.safetensors"), tensors, metadata={"format": "mlx"})
    names = {dtype: name for name, dtype in MLX.items()}
    return {key: description(names[t.dtype], t.shape, bytes(memoryview(t))) for key, t in tensors.items()}


def main():
    folder = pathlib.Path(sys.argv[1])
    expected = {"hf": hf_file(folder), "mlx": mlx_file(folder)}
    (folder / "safetensors.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


main()

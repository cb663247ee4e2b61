"""Goldens of the linear ops: mlx's quantize, dequantize and quantized_matmul, and numpy in float64.

Made with mlx 0.32.4 (CPU), numpy and safetensors. Usage: linear.py OUT_FOLDER
Writes op files: inputs under their field names, attributes as "attr.NAME", outputs as "expect.NAME".
"""

import pathlib
import sys

import mlx.core as mx
import numpy as np
from safetensors.numpy import save_file

mx.set_default_device(mx.cpu)
rng = np.random.default_rng(11)

GROUPS = {"mxfp4": 32, "mxfp8": 32, "nvfp4": 16}


def weight(name, shape, mode="affine", bits=4, group=64):
    """A quantised weight: its tensors and attributes, and its values in float64."""
    dense = mx.array(rng.normal(size=shape).astype(np.float32) * 0.1)
    if mode == "affine":
        words, scales, biases = mx.quantize(dense, group_size=group, bits=bits)
        values = mx.dequantize(words, scales, biases, group_size=group, bits=bits)
        tensors = {f"{name}.weight": words, f"{name}.scales": scales, f"{name}.biases": biases}
    else:
        group = GROUPS[mode]
        bits = 8 if mode == "mxfp8" else 4
        words, scales = mx.quantize(dense, mode=mode)
        values = mx.dequantize(words, scales, mode=mode, dtype=mx.float32)
        tensors = {f"{name}.weight": words, f"{name}.scales": scales}
    attributes = {f"attr.{name}.mode": mode, f"attr.{name}.bits": str(bits), f"attr.{name}.group_size": str(group)}
    return {key: np.array(value) for key, value in tensors.items()}, attributes, np.array(values, np.float64)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


def silu(x):
    return x / (1 + np.exp(-x))


def write(folder, op, case, tensors, attributes, expected, tolerance="1e-6"):
    tensors = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    for name, value in expected.items():
        tensors["expect." + name] = np.ascontiguousarray(value.astype(np.float32))
    save_file(tensors, folder / f"{op}_{case}.safetensors", metadata={"op": op, "tolerance": tolerance, **attributes})


AFFINE = ((2, 32), (3, 64), (4, 32), (4, 64), (4, 128), (5, 64), (6, 128), (8, 64))
FORMATS = [("affine", bits, group) for bits, group in AFFINE]
FORMATS += [(mode, 0, 0) for mode in GROUPS]


def case_name(mode, bits, group):
    return f"{bits}bit_g{group}" if mode == "affine" else mode


def matmul(folder):
    for mode, bits, group in FORMATS:
        tensors, attributes, _ = weight("w", (12, 384), mode, bits, group)
        x = normal(5, 384)
        parts = [mx.array(tensors[key]) for key in ("w.weight", "w.scales")]
        options = {"transpose": True, "mode": mode}
        if mode == "affine":
            parts.append(mx.array(tensors["w.biases"]))
            options |= {"group_size": group, "bits": bits}
        out = np.array(mx.quantized_matmul(mx.array(x), *parts, **options))
        write(folder, "matmul", case_name(mode, bits, group), {"x": x, **tensors}, attributes, {"out": out}, "3e-6")


def embed(folder):
    for mode, bits, group in FORMATS:
        tensors, attributes, values = weight("table", (6, 256), mode, bits, group)
        ids = np.array([5, 0, 3, 3], np.int32)
        write(folder, "embed", case_name(mode, bits, group), {"ids": ids, **tensors}, attributes, {"out": values[ids]})


def gate_up_swiglu(folder):
    gate, gate_attributes, gate_values = weight("gate_w", (10, 192))
    up, up_attributes, up_values = weight("up_w", (10, 192), bits=6)
    x = normal(4, 192)
    out = silu(x @ gate_values.T) * (x @ up_values.T)
    write(folder, "gate_up_swiglu", "4bit_6bit", {"x": x, **gate, **up}, gate_attributes | up_attributes, {"out": out})


def experts(folder):
    tensors, attributes, values = weight("w", (5, 9, 128))
    chosen = np.array([[0, 4], [4, 4], [2, 0], [1, 3], [2, 4], [4, 0]], np.int32)
    x = normal(6, 2, 128)
    out = np.einsum("tjk,tjnk->tjn", x, values[chosen])
    write(folder, "expert_matmul", "own_rows", {"x": x, "experts": chosen, **tensors}, attributes, {"out": out})
    out = np.einsum("tk,tjnk->tjn", x[:, 0], values[chosen])
    write(folder, "expert_matmul", "shared_rows", {"x": x[:, 0], "experts": chosen, **tensors}, attributes, {"out": out})
    gate, gate_attributes, gate_values = weight("gate_w", (5, 9, 128))
    up, up_attributes, up_values = weight("up_w", (5, 9, 128), bits=8)
    product = lambda w: np.einsum("tk,tjnk->tjn", x[:, 0], w[chosen])
    out = silu(product(gate_values)) * product(up_values)
    write(folder, "expert_gate_up_swiglu", "4bit_8bit", {"x": x[:, 0], "experts": chosen, **gate, **up},
          gate_attributes | up_attributes, {"out": out})


def latent(folder):
    heads, nope, v, rank = 3, 64, 32, 128
    tensors, attributes, values = weight("kv_b", (heads * (nope + v), rank))
    per_head = values.reshape(heads, nope + v, rank)
    q, latents = normal(4, heads, nope), normal(4, heads, rank)
    write(folder, "mla_absorb_q", "kv_b", {"q_nope": q, **tensors}, {**attributes, "attr.v": str(v)},
          {"q_latent": np.einsum("thn,hnr->thr", q, per_head[:, :nope])})
    write(folder, "mla_project_out", "kv_b", {"latent": latents, **tensors}, {**attributes, "attr.nope": str(nope)},
          {"out": np.einsum("thr,hvr->thv", latents, per_head[:, nope:])})
    tensors, attributes, values = weight("embed_q", (heads, rank, nope))
    write(folder, "mla_absorb_q", "embed_q", {"q_nope": q, **tensors}, attributes,
          {"q_latent": np.einsum("thn,hrn->thr", q, values)})
    tensors, attributes, values = weight("unembed_out", (heads, v, rank))
    write(folder, "mla_project_out", "unembed_out", {"latent": latents, **tensors}, attributes,
          {"out": np.einsum("thr,hvr->thv", latents, values)})


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (matmul, embed, gate_up_swiglu, experts, latent):
        make(folder)


if __name__ == "__main__":
    main()

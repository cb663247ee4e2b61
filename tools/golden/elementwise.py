"""Makes op files of norms, positions, gates and routers for tests/data/ops from Hugging Face's own layers.

Made with torch 2.13.0 (CPU), transformers 5.22.2, safetensors 0.8.0. Usage: python elementwise.py OUT_FOLDER
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as qwen35
from transformers.models.qwen3_moe import modeling_qwen3_moe as qwen3
from transformers.models.qwen3_next import modeling_qwen3_next as qwen_next


def save(folder, op, case, inputs, expected, tolerance, **attributes):
    tensors = {name: tensor.contiguous() for name, tensor in inputs.items()}
    tensors |= {f"expect.{name}": tensor.contiguous() for name, tensor in expected.items()}
    metadata = {f"attr.{name}": str(value) for name, value in attributes.items()}
    metadata |= {"op": op, "tolerance": str(tolerance)}
    save_file({name: tensor.detach() for name, tensor in tensors.items()}, folder / f"{op}_{case}.safetensors", metadata)


def rms_norm(folder):
    x = torch.randn(5, 256) * 3
    plain = qwen3.Qwen3MoeRMSNorm(256, eps=1e-6)
    plain.weight.data.normal_(1, 0.2)
    save(folder, "rms_norm", "qwen3_moe", {"x": x, "weight": plain.weight}, {"out": plain(x)}, 1e-6, eps=1e-6)
    # Stored zero-centred; the op takes the weight with the one added, as converted checkpoints hold it.
    centred = qwen_next.Qwen3NextRMSNorm(128, eps=1e-6)
    centred.weight.data.normal_(0, 0.2)
    x = torch.randn(3, 4, 128)
    inputs = {"x": x, "weight": 1 + centred.weight}
    save(folder, "rms_norm", "qwen3_next_heads", inputs, {"out": centred(x)}, 1e-6, eps=1e-6)
    x = x.bfloat16()
    inputs = {"x": x, "weight": 1 + centred.weight}
    save(folder, "rms_norm", "qwen3_next_bf16", inputs, {"out": centred(x)}, 1e-4, eps=1e-6)


def main():
    torch.manual_seed(20250101)
    torch.set_grad_enabled(False)
    folder = pathlib.Path(sys.argv[1])
    rms_norm(folder)


if __name__ == "__main__":
    main()

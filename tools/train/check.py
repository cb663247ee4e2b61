"""Compares the training forward with transformers', and affine.py with MLX. Runs on a CPU in under a minute."""

import numpy as np
import torch

import affine
import forward
from architectures import VOCAB, build


def check_forward(name: str):
    torch.manual_seed(3)
    model = build(name, layers=4).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.05)
    ids = torch.randint(0, VOCAB, (2, 192))
    labels = torch.cat([ids[:, 1:], torch.full((2, 1), -100)], 1)
    original = (forward.qwen.torch_chunk_gated_delta_rule, forward.qwen.causal_conv1d_fn)
    expected = model(ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(
        expected[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="sum"
    )
    loss.backward()
    gradients = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    forward.use_training_kernels()
    hidden, _, loads = forward.trunk(model, ids)
    ours = forward.head(model, hidden, labels)
    ours.backward()
    forward.qwen.torch_chunk_gated_delta_rule, forward.qwen.causal_conv1d_fn = original
    worst = max(
        ((p.grad - gradients[n]).norm() / (gradients[n].norm() + 1e-9)).item()
        for n, p in model.named_parameters()
    )
    print(f"{name}: loss {loss.item():.5f} {ours.item():.5f}, worst relative gradient error {worst:.1e}")
    assert abs(loss.item() - ours.item()) < 1e-5 * loss.item() and worst < 2e-3
    assert all(abs(load.sum().item() - 4) < 1e-4 for load in loads if load.numel() > 1)


def check_affine():
    import mlx.core as mx

    torch.manual_seed(5)
    weight = (torch.randn(512, 256) * torch.rand(512, 1)).bfloat16()
    for bits in (4, 8):
        packed = mx.quantize(mx.array(weight.float().numpy()).astype(mx.bfloat16), group_size=64, bits=bits)
        expected = mx.dequantize(*packed, group_size=64, bits=bits).astype(mx.float32)
        ours = affine.quantised(weight.float().reshape(-1, 64), bits).reshape(weight.shape)
        difference = np.abs(np.array(expected) - ours.numpy()) / np.abs(np.array(expected)).max()
        print(f"affine {bits} bits: largest difference {difference.max():.1e}, mean {difference.mean():.1e}")
        assert difference.mean() < 1e-3


if __name__ == "__main__":
    check_forward("delta-story")
    check_forward("latent-story")
    check_affine()

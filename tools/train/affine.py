"""MLX's affine quantisation in PyTorch, for training through it: the exact values of a 4-bit checkpoint."""

from contextlib import contextmanager

import torch

GROUP = 64


def quantised(groups: torch.Tensor, bits: int) -> torch.Tensor:
    """[N, 64] F32 -> the values after quantising and dequantising each row; scale and bias are BF16."""
    bins = (1 << bits) - 1
    low, high = groups.amin(1, keepdim=True), groups.amax(1, keepdim=True)
    from_low = low.abs() > high.abs()
    scale = ((high - low) / bins).clamp(min=1e-7)
    scale = torch.where(from_low, scale, -scale)
    edge = torch.where(from_low, low, high)
    steps = torch.round(edge / scale)
    scale = torch.where(steps != 0, edge / steps, scale)
    bias = torch.where(steps != 0, edge, torch.zeros_like(edge))
    codes = torch.round((groups - bias) / scale).clamp(0, bins)
    return codes * scale.bfloat16().float() + bias.bfloat16().float()


class AffineWeights:
    """The weights that mlx-lm quantises, as rows of 64, and a context in which they have their quantised values."""

    def __init__(self, model: torch.nn.Module):
        self.plans = {4: [], 8: []}
        config = model.config
        for name, p in model.named_parameters():
            if p.dim() < 2 or "conv1d" in name or p.shape[-1] % GROUP:
                continue
            router = name.endswith("mlp.gate.weight")
            if router and hasattr(config, "n_group"):
                continue  # mlx-lm does not quantise DeepSeek's router
            split = None
            if "kv_b_proj" in name:
                split = (config.num_attention_heads, config.qk_nope_head_dim)
            self.plans[8 if router or "shared_expert_gate" in name else 4].append((p, split))

    @staticmethod
    def rows(p, split):
        """MLX splits kv_b_proj by head and stores the key part transposed, so its groups run along the key dimension."""
        if not split:
            return p.detach().reshape(-1, GROUP)
        heads = p.detach().view(split[0], -1, p.shape[-1])
        keys, values = heads[:, : split[1]].mT, heads[:, split[1] :]
        return torch.cat([keys.reshape(-1, GROUP), values.reshape(-1, GROUP)])

    @staticmethod
    def assign(p, split, rows):
        if not split:
            p.data.copy_(rows.view_as(p))
            return
        heads = p.data.view(split[0], -1, p.shape[-1])
        count = split[0] * split[1] * p.shape[-1] // GROUP
        heads[:, : split[1]].copy_(rows[:count].view(split[0], p.shape[-1], split[1]).mT)
        heads[:, split[1] :].copy_(rows[count:].view(split[0], -1, p.shape[-1]))

    @contextmanager
    def applied(self):
        """Straight-through: forward and backward see quantised values, the optimiser the exact ones."""
        exact = [(p, p.detach().clone()) for plan in self.plans.values() for p, _ in plan]
        for bits, plan in self.plans.items():
            if not plan:
                continue
            parts = [self.rows(p, split) for p, split in plan]
            done = quantised(torch.cat(parts), bits).split([len(r) for r in parts])
            for (p, split), rows in zip(plan, done):
                self.assign(p, split, rows)
        try:
            yield
        finally:
            for p, value in exact:
                p.data.copy_(value)

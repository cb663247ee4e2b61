"""The two bundled models: transformers' classes with small dimensions and the original layout."""

import math

import torch
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig

VOCAB = 4096
END_OF_TEXT, IM_START, IM_END = VOCAB - 3, VOCAB - 2, VOCAB - 1
CONTEXT = 2048
SHARED = dict(
    vocab_size=VOCAB,
    hidden_size=384,
    num_hidden_layers=8,
    num_attention_heads=4,
    num_experts_per_tok=4,
    moe_intermediate_size=128,
    max_position_embeddings=CONTEXT,
    rms_norm_eps=1e-6,
    tie_word_embeddings=False,
    initializer_range=0.02,
    bos_token_id=None,
    eos_token_id=END_OF_TEXT,
    pad_token_id=None,
    use_cache=True,
)


def delta_story() -> Qwen3_5MoeTextConfig:
    """Three Gated DeltaNet layers to one gated full-attention layer, 16 experts and a gated shared one."""
    return Qwen3_5MoeTextConfig(
        **SHARED,
        num_key_value_heads=2,
        head_dim=256,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_conv_kernel_dim=4,
        num_experts=16,
        shared_expert_intermediate_size=384,
        layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 2,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000_000,
            "partial_rotary_factor": 0.25,
            "mrope_interleaved": True,
            "mrope_section": [11, 11, 10],
        },
    )


def latent_story() -> DeepseekV3Config:
    """Multi-head latent attention, group-limited sigmoid router over 16 experts, first layer dense, YaRN."""
    return DeepseekV3Config(
        **SHARED,
        num_key_value_heads=4,
        q_lora_rank=256,
        kv_lora_rank=256,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        intermediate_size=1024,
        n_routed_experts=16,
        n_shared_experts=3,
        n_group=4,
        topk_group=2,
        routed_scaling_factor=2.5,
        norm_topk_prob=True,
        first_k_dense_replace=1,
        num_nextn_predict_layers=0,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10_000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 512,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
    )


def build(name: str, layers: int = 0) -> torch.nn.Module:
    """A freshly initialised model in F32; `layers` reduces it for tests."""
    config = {"delta-story": delta_story, "latent-story": latent_story}[name]()
    if layers:
        config.num_hidden_layers = layers
    model = {"delta-story": Qwen3_5MoeForCausalLM, "latent-story": DeepseekV3ForCausalLM}[name](config)
    for module in model.modules():
        if hasattr(module, "dt_bias"):
            spread_decay_rates(module)
    return model.float()


@torch.no_grad()
def spread_decay_rates(delta_net: torch.nn.Module):
    """Initialises the heads to memories between a few and a thousand tokens; the class initialises all to short ones."""
    heads = delta_net.num_v_heads
    step = torch.exp(torch.rand(heads) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
    delta_net.dt_bias.copy_(step + torch.log(-torch.expm1(-step)))
    delta_net.A_log.copy_(torch.empty(heads).uniform_(1, 16).log())

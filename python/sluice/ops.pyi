"""Every op of the catalogue as a function on arrays. Made by tools/python_stub.py."""

import dataclasses
from typing import Any, NamedTuple

Array = Any  # of numpy, of torch, or anything else that speaks DLPack

@dataclasses.dataclass(frozen=True)
class Quantized:
    weight: Array
    scales: Array
    biases: Array | None = None
    mode: str = "affine"
    bits: int = 4
    group_size: int = 64

def quantize(values: Array, *, bits: int = 4, group_size: int = 64) -> Quantized: ...
def dequantize(weight: Quantized, *, backend: str = "auto") -> Array: ...
def describe(op: str | None = None) -> Any: ...

def embed(*, table: Array | Quantized, ids: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def matmul(*, x: Array, w: Array | Quantized, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def expert_matmul(*, x: Array, w: Array | Quantized, experts: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def gate_up_swiglu(*, x: Array, gate_w: Array | Quantized, up_w: Array | Quantized, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def expert_gate_up_swiglu(*, x: Array, gate_w: Array | Quantized, up_w: Array | Quantized, experts: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def swiglu(*, gate: Array, up: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def add(*, a: Array, b: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def sigmoid_gate(*, x: Array, gate: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def rms_norm(*, x: Array, weight: Array | None = None, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class AddRmsNormResult(NamedTuple):
    residual: Array
    out: Array

def add_rms_norm(*, residual: Array, delta: Array, weight: Array, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> AddRmsNormResult: ...

def gated_rms_norm(*, x: Array, z: Array, weight: Array, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class QkL2NormResult(NamedTuple):
    q: Array
    k: Array

def qk_l2_norm(*, q: Array, k: Array, eps: float, q_scale: float, k_scale: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkL2NormResult: ...

def rope(*, x: Array, inv_freq: Array, positions: Array, mscale: float = 1, pairing: str = 'half', backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class QkNormRopeResult(NamedTuple):
    q: Array
    k: Array

def qk_norm_rope(*, q: Array, k: Array, q_weight: Array, k_weight: Array, inv_freq: Array, positions: Array, eps: float, mscale: float = 1, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkNormRopeResult: ...

class SplitQGateResult(NamedTuple):
    q: Array
    gate: Array

def split_q_gate(*, x: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> SplitQGateResult: ...

class KvAppendResult(NamedTuple):
    k_cache: Array
    v_cache: Array

def kv_append(*, k: Array, v: Array, k_cache: Array, v_cache: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, start: int | Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> KvAppendResult: ...

def attention(*, q: Array, k_cache: Array, v_cache: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, start: int | Array, scale: float, window: int = 0, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def hadamard(*, x: Array, signs: Array | None = None, inverse: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class TurboquantEncodeResult(NamedTuple):
    codes: Array
    norms: Array

def turboquant_encode(*, x: Array, signs: Array | None = None, bits: int, norm: str = 'plain', backend: str = "auto", threads: int = 0, exact: bool = True) -> TurboquantEncodeResult: ...

def turboquant_decode(*, codes: Array, norms: Array, signs: Array | None = None, bits: int, rotated: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class TurboquantAppendResult(NamedTuple):
    k_codes: Array
    v_codes: Array
    k_norms: Array
    v_norms: Array

def turboquant_append(*, k: Array, v: Array, signs: Array | None = None, k_codes: Array, v_codes: Array, k_norms: Array, v_norms: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, k_bits: int, v_bits: int, norm: str = 'plain', start: int | Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> TurboquantAppendResult: ...

def turboquant_attention(*, q: Array, k_codes: Array, v_codes: Array, k_norms: Array, v_norms: Array, signs: Array | None = None, k_new: Array | None = None, v_new: Array | None = None, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, k_bits: int, v_bits: int, length: int | Array = 0, start: int | Array = 0, ring_start: int | Array = 0, window: int = 0, scale: float, rotated: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class QkNormRopeAppendResult(NamedTuple):
    q: Array
    k: Array
    k_cache: Array
    v_cache: Array

def qk_norm_rope_append(*, q: Array, k: Array, v: Array, q_weight: Array, k_weight: Array, inv_freq: Array, positions: Array, k_cache: Array, v_cache: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, eps: float, mscale: float = 1, start: int | Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkNormRopeAppendResult: ...

class QkNormRopeTurboquantAppendResult(NamedTuple):
    q: Array
    k: Array
    k_codes: Array
    v_codes: Array
    k_norms: Array
    v_norms: Array

def qk_norm_rope_turboquant_append(*, q: Array, k: Array, v: Array, q_weight: Array, k_weight: Array, inv_freq: Array, positions: Array, signs: Array | None = None, k_codes: Array, v_codes: Array, k_norms: Array, v_norms: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, eps: float, mscale: float = 1, k_bits: int, v_bits: int, norm: str = 'plain', start: int | Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkNormRopeTurboquantAppendResult: ...

def causal_conv1d(*, x: Array, weight: Array, state: Array, seq_starts: Array | None = None, slots: Array | None = None, save_at: Array | None = None, saved: Array | None = None, backend: str = "auto", threads: int = 0, exact: bool = True) -> Any: ...

class DeltaGatesResult(NamedTuple):
    g: Array
    beta: Array

def delta_gates(*, a: Array, b: Array, A_log: Array, dt_bias: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> DeltaGatesResult: ...

def delta_rule(*, q: Array, k: Array, v: Array, g: Array, beta: Array, state: Array, seq_starts: Array | None = None, slots: Array | None = None, save_at: Array | None = None, saved: Array | None = None, form: str = 'auto', heads: str = 'block', backend: str = "auto", threads: int = 0, exact: bool = True) -> Any: ...

class DeltaStepResult(NamedTuple):
    conv_state: Array
    state: Array
    out: Array

def delta_step(*, qkv: Array, z: Array, a: Array, b: Array, conv_weight: Array, A_log: Array, dt_bias: Array, norm_weight: Array, conv_state: Array, state: Array, seq_starts: Array | None = None, slots: Array | None = None, qk_eps: float, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> DeltaStepResult: ...

def delta_kkt(*, k: Array, beta: Array, g: Array, chunk: int, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class RouteSoftmaxResult(NamedTuple):
    experts: Array
    weights: Array

def route_softmax(*, logits: Array, k: int, normalize: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> RouteSoftmaxResult: ...

class RouteSigmoidResult(NamedTuple):
    experts: Array
    weights: Array

def route_sigmoid(*, logits: Array, bias: Array, k: int, groups: int = 1, top_groups: int = 1, scale: float = 1, normalize: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> RouteSigmoidResult: ...

def moe_combine(*, residual: Array, expert_out: Array, weights: Array, shared_out: Array | None = None, shared_gate: Array | None = None, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def moe_scatter_add(*, bucket_out: Array, token_idx: Array, weights: Array, sum: Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class MlaSplitResult(NamedTuple):
    q_nope: Array
    q_pe: Array
    kv_latent: Array
    k_pe: Array

def mla_split(*, q_full: Array, kv_pre: Array, nope: int, rope: int, backend: str = "auto", threads: int = 0, exact: bool = True) -> MlaSplitResult: ...

class MlaAppendResult(NamedTuple):
    latent_cache: Array
    rope_cache: Array

def mla_append(*, kv_latent: Array, k_pe: Array, latent_cache: Array, rope_cache: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, start: int | Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> MlaAppendResult: ...

def mla_absorb_q(*, q_nope: Array, kv_b: Array | Quantized | None = None, embed_q: Array | Quantized | None = None, v: int = 0, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def mla_attention(*, q_latent: Array, q_pe: Array, latent_cache: Array, rope_cache: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, start: int | Array, scale: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def mla_project_out(*, latent: Array, kv_b: Array | Quantized | None = None, unembed_out: Array | Quantized | None = None, nope: int = 0, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

class MlaTurboquantAppendResult(NamedTuple):
    latent_codes: Array
    latent_norms: Array
    rope_cache: Array

def mla_turboquant_append(*, kv_latent: Array, k_pe: Array, signs: Array | None = None, latent_codes: Array, latent_norms: Array, rope_cache: Array, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, bits: int, norm: str = 'plain', start: int | Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> MlaTurboquantAppendResult: ...

def mla_turboquant_attention(*, q_latent: Array, q_pe: Array, latent_codes: Array, latent_norms: Array, rope_cache: Array, signs: Array | None = None, latent_new: Array | None = None, seq_starts: Array | None = None, slots: Array | None = None, page_table: Array | None = None, bits: int, start: int | Array, scale: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> Array: ...

def sample(*, logits: Array, positions: Array, slots: Array | None = None, counts: Array | None = None, bias_ids: Array | None = None, bias: Array | None = None, allowed: Array | None = None, temperature: float | Array = 0, top_k: int | Array = 0, top_p: float | Array = 1, min_p: float | Array = 0, seed: int | Array = 0, repetition_penalty: float | Array = 1, presence_penalty: float | Array = 0, frequency_penalty: float | Array = 0, logprobs: int | Array = -1, backend: str = "auto", threads: int = 0, exact: bool = True) -> Any: ...

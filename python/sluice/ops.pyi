"""Every op of the catalogue as a function on arrays. Made by tools/python_stub.py."""

import dataclasses
from typing import Any, NamedTuple

__all__ = ["Quantized", "dequantize", "describe", "quantize", "embed", "matmul", "expert_matmul", "gate_up_swiglu", "expert_gate_up_swiglu", "swiglu", "add", "sigmoid_gate", "rms_norm", "add_rms_norm", "gated_rms_norm", "qk_l2_norm", "rope", "qk_norm_rope", "split_q_gate", "kv_append", "attention", "hadamard", "turboquant_encode", "turboquant_decode", "turboquant_append", "turboquant_attention", "qk_norm_rope_append", "qk_norm_rope_turboquant_append", "causal_conv1d", "delta_gates", "delta_rule", "delta_step", "delta_kkt", "route_softmax", "route_sigmoid", "moe_combine", "moe_scatter_add", "mla_split", "mla_append", "mla_absorb_q", "mla_attention", "mla_project_out", "mla_turboquant_append", "mla_turboquant_attention", "sample"]

_Array = Any  # of numpy, torch, or any other library with DLPack

@dataclasses.dataclass(frozen=True, eq=False)
class Quantized:
    weight: _Array
    scales: _Array
    biases: _Array | None = None
    mode: str = "affine"
    bits: int | None = None
    group_size: int | None = None

def quantize(values: _Array, *, bits: int = 4, group_size: int = 64) -> Quantized: ...
def dequantize(weight: Quantized, *, backend: str = "auto") -> _Array: ...
def describe(op: str | None = None) -> Any: ...

def embed(*, table: _Array | Quantized, ids: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def matmul(*, x: _Array, w: _Array | Quantized, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def expert_matmul(*, x: _Array, w: _Array | Quantized, experts: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def gate_up_swiglu(*, x: _Array, gate_w: _Array | Quantized, up_w: _Array | Quantized, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def expert_gate_up_swiglu(*, x: _Array, gate_w: _Array | Quantized, up_w: _Array | Quantized, experts: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def swiglu(*, gate: _Array, up: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def add(*, a: _Array, b: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def sigmoid_gate(*, x: _Array, gate: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def rms_norm(*, x: _Array, weight: _Array | None = None, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class AddRmsNormResult(NamedTuple):
    residual: _Array
    out: _Array

def add_rms_norm(*, residual: _Array, delta: _Array, weight: _Array, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> AddRmsNormResult: ...

def gated_rms_norm(*, x: _Array, z: _Array, weight: _Array, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class QkL2NormResult(NamedTuple):
    q: _Array
    k: _Array

def qk_l2_norm(*, q: _Array, k: _Array, eps: float, q_scale: float, k_scale: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkL2NormResult: ...

def rope(*, x: _Array, inv_freq: _Array, positions: _Array, mscale: float = 1, pairing: str = 'half', backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class QkNormRopeResult(NamedTuple):
    q: _Array
    k: _Array

def qk_norm_rope(*, q: _Array, k: _Array, q_weight: _Array, k_weight: _Array, inv_freq: _Array, positions: _Array, eps: float, mscale: float = 1, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkNormRopeResult: ...

class SplitQGateResult(NamedTuple):
    q: _Array
    gate: _Array

def split_q_gate(*, x: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> SplitQGateResult: ...

class KvAppendResult(NamedTuple):
    k_cache: _Array
    v_cache: _Array

def kv_append(*, k: _Array, v: _Array, k_cache: _Array, v_cache: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, start: int | _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> KvAppendResult: ...

def attention(*, q: _Array, k_cache: _Array, v_cache: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, start: int | _Array, scale: float, window: int = 0, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def hadamard(*, x: _Array, signs: _Array | None = None, inverse: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class TurboquantEncodeResult(NamedTuple):
    codes: _Array
    norms: _Array

def turboquant_encode(*, x: _Array, signs: _Array | None = None, bits: int, norm: str = 'plain', backend: str = "auto", threads: int = 0, exact: bool = True) -> TurboquantEncodeResult: ...

def turboquant_decode(*, codes: _Array, norms: _Array, signs: _Array | None = None, bits: int, rotated: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class TurboquantAppendResult(NamedTuple):
    k_codes: _Array
    v_codes: _Array
    k_norms: _Array
    v_norms: _Array

def turboquant_append(*, k: _Array, v: _Array, signs: _Array | None = None, k_codes: _Array, v_codes: _Array, k_norms: _Array, v_norms: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, k_bits: int, v_bits: int, norm: str = 'plain', start: int | _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> TurboquantAppendResult: ...

def turboquant_attention(*, q: _Array, k_codes: _Array, v_codes: _Array, k_norms: _Array, v_norms: _Array, signs: _Array | None = None, k_new: _Array | None = None, v_new: _Array | None = None, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, k_bits: int, v_bits: int, length: int | _Array = 0, start: int | _Array = 0, ring_start: int | _Array = 0, window: int = 0, scale: float, rotated: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class QkNormRopeAppendResult(NamedTuple):
    q: _Array
    k: _Array
    k_cache: _Array
    v_cache: _Array

def qk_norm_rope_append(*, q: _Array, k: _Array, v: _Array, q_weight: _Array, k_weight: _Array, inv_freq: _Array, positions: _Array, k_cache: _Array, v_cache: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, eps: float, mscale: float = 1, start: int | _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkNormRopeAppendResult: ...

class QkNormRopeTurboquantAppendResult(NamedTuple):
    q: _Array
    k: _Array
    k_codes: _Array
    v_codes: _Array
    k_norms: _Array
    v_norms: _Array

def qk_norm_rope_turboquant_append(*, q: _Array, k: _Array, v: _Array, q_weight: _Array, k_weight: _Array, inv_freq: _Array, positions: _Array, signs: _Array | None = None, k_codes: _Array, v_codes: _Array, k_norms: _Array, v_norms: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, eps: float, mscale: float = 1, k_bits: int, v_bits: int, norm: str = 'plain', start: int | _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> QkNormRopeTurboquantAppendResult: ...

def causal_conv1d(*, x: _Array, weight: _Array, state: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, save_at: _Array | None = None, saved: _Array | None = None, backend: str = "auto", threads: int = 0, exact: bool = True) -> Any: ...

class DeltaGatesResult(NamedTuple):
    g: _Array
    beta: _Array

def delta_gates(*, a: _Array, b: _Array, A_log: _Array, dt_bias: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> DeltaGatesResult: ...

def delta_rule(*, q: _Array, k: _Array, v: _Array, g: _Array, beta: _Array, state: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, save_at: _Array | None = None, saved: _Array | None = None, form: str = 'auto', heads: str = 'block', backend: str = "auto", threads: int = 0, exact: bool = True) -> Any: ...

class DeltaStepResult(NamedTuple):
    conv_state: _Array
    state: _Array
    out: _Array

def delta_step(*, qkv: _Array, z: _Array, a: _Array, b: _Array, conv_weight: _Array, A_log: _Array, dt_bias: _Array, norm_weight: _Array, conv_state: _Array, state: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, qk_eps: float, eps: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> DeltaStepResult: ...

def delta_kkt(*, k: _Array, beta: _Array, g: _Array, chunk: int, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class RouteSoftmaxResult(NamedTuple):
    experts: _Array
    weights: _Array

def route_softmax(*, logits: _Array, k: int, normalize: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> RouteSoftmaxResult: ...

class RouteSigmoidResult(NamedTuple):
    experts: _Array
    weights: _Array

def route_sigmoid(*, logits: _Array, bias: _Array, k: int, groups: int = 1, top_groups: int = 1, scale: float = 1, normalize: bool = False, backend: str = "auto", threads: int = 0, exact: bool = True) -> RouteSigmoidResult: ...

def moe_combine(*, residual: _Array, expert_out: _Array, weights: _Array, shared_out: _Array | None = None, shared_gate: _Array | None = None, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def moe_scatter_add(*, bucket_out: _Array, token_idx: _Array, weights: _Array, sum: _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class MlaSplitResult(NamedTuple):
    q_nope: _Array
    q_pe: _Array
    kv_latent: _Array
    k_pe: _Array

def mla_split(*, q_full: _Array, kv_pre: _Array, nope: int, rope: int, backend: str = "auto", threads: int = 0, exact: bool = True) -> MlaSplitResult: ...

class MlaAppendResult(NamedTuple):
    latent_cache: _Array
    rope_cache: _Array

def mla_append(*, kv_latent: _Array, k_pe: _Array, latent_cache: _Array, rope_cache: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, start: int | _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> MlaAppendResult: ...

def mla_absorb_q(*, q_nope: _Array, kv_b: _Array | Quantized | None = None, embed_q: _Array | Quantized | None = None, v: int = 0, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def mla_attention(*, q_latent: _Array, q_pe: _Array, latent_cache: _Array, rope_cache: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, start: int | _Array, scale: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def mla_project_out(*, latent: _Array, kv_b: _Array | Quantized | None = None, unembed_out: _Array | Quantized | None = None, nope: int = 0, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

class MlaTurboquantAppendResult(NamedTuple):
    latent_codes: _Array
    latent_norms: _Array
    rope_cache: _Array

def mla_turboquant_append(*, kv_latent: _Array, k_pe: _Array, signs: _Array | None = None, latent_codes: _Array, latent_norms: _Array, rope_cache: _Array, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, bits: int, norm: str = 'plain', start: int | _Array, backend: str = "auto", threads: int = 0, exact: bool = True) -> MlaTurboquantAppendResult: ...

def mla_turboquant_attention(*, q_latent: _Array, q_pe: _Array, latent_codes: _Array, latent_norms: _Array, rope_cache: _Array, signs: _Array | None = None, latent_new: _Array | None = None, seq_starts: _Array | None = None, slots: _Array | None = None, page_table: _Array | None = None, bits: int, start: int | _Array, scale: float, backend: str = "auto", threads: int = 0, exact: bool = True) -> _Array: ...

def sample(*, logits: _Array, positions: _Array, slots: _Array | None = None, counts: _Array | None = None, bias_ids: _Array | None = None, bias: _Array | None = None, allowed: _Array | None = None, temperature: float | _Array = 0, top_k: int | _Array = 0, top_p: float | _Array = 1, min_p: float | _Array = 0, seed: int | _Array = 0, repetition_penalty: float | _Array = 1, presence_penalty: float | _Array = 0, frequency_penalty: float | _Array = 0, logprobs: int | _Array = -1, backend: str = "auto", threads: int = 0, exact: bool = True) -> Any: ...

"""A small language model with random weights as a GGUF file of the llama family, and what it computes by definition."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

LAYERS, WIDTH, HEADS, KEY_VALUE_HEADS, HIDDEN, CONTEXT, BASE, EPSILON = 3, 32, 4, 2, 64, 128, 1000.0, 1e-5
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("t h", "th e", "Ġ the", "i n", "a n", "Ġ a", "o n")


def byte_letters() -> list[str]:
    """The letter that stands for each byte in vocabularies of byte pairs."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [each for each in range(256) if each not in shown]
    letters = {each: chr(each) for each in shown} | {each: chr(256 + n) for n, each in enumerate(hidden)}
    return [letters[each] for each in range(256)]


def vocabulary() -> list[str]:
    return [*SPECIAL, *byte_letters(), *("".join(merge.split(" ")) for merge in MERGES)]


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Weights by the names of the file; norms are near 1."""
    draws = np.random.default_rng(seed)
    width = WIDTH // HEADS

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (draws.normal(size=(rows, columns)) / math.sqrt(columns)).astype(np.float32)

    def norm() -> np.ndarray:
        return (1 + 0.2 * draws.normal(size=WIDTH)).astype(np.float32)

    found = {"token_embd.weight": matrix(len(vocabulary()), WIDTH), "output_norm.weight": norm()}
    for layer in range(LAYERS):
        found |= {
            f"blk.{layer}.attn_norm.weight": norm(),
            f"blk.{layer}.attn_q.weight": matrix(WIDTH, WIDTH),
            f"blk.{layer}.attn_k.weight": matrix(KEY_VALUE_HEADS * width, WIDTH),
            f"blk.{layer}.attn_v.weight": matrix(KEY_VALUE_HEADS * width, WIDTH),
            f"blk.{layer}.attn_output.weight": matrix(WIDTH, WIDTH),
            f"blk.{layer}.ffn_norm.weight": norm(),
            f"blk.{layer}.ffn_gate.weight": matrix(HIDDEN, WIDTH),
            f"blk.{layer}.ffn_up.weight": matrix(HIDDEN, WIDTH),
            f"blk.{layer}.ffn_down.weight": matrix(WIDTH, HIDDEN),
        }
    return found


def write_model(
    path: Path, weights: dict[str, np.ndarray] | None = None, architecture: str = "llama", **stated: Any
) -> Path:
    """The model as a file; `stated` are further entries, such as `add_expert_count=4`."""
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("small")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_VALUE_HEADS)
    writer.add_rope_freq_base(BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    for name, value in {"add_tokenizer_model": "gpt2", "add_tokenizer_pre": "smollm", **stated}.items():
        getattr(writer, name)(value)
    names = vocabulary()
    writer.add_token_list(names)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(names) - len(SPECIAL)))
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(2)
    for name, values in (tensors() if weights is None else weights).items():
        if name.endswith("down.weight"):   # one kind of tensors is quantised, as all are in real files
            writer.add_tensor(name, gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0),
                              raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def logits_by_definition(tokens: list[int], weights: dict[str, np.ndarray]) -> np.ndarray:
    """The logits after every token, one head after the other in float64; neighbours are rotated, as files mean it."""
    import gguf

    kind = gguf.GGMLQuantizationType.Q8_0
    exact = {
        name: (gguf.dequantize(gguf.quantize(each, kind), kind) if name.endswith("down.weight") else each).astype(float)
        for name, each in weights.items()
    }
    width, shared = WIDTH // HEADS, HEADS // KEY_VALUE_HEADS

    def norm(row: np.ndarray, name: str) -> np.ndarray:
        return row / math.sqrt(sum(row * row) / len(row) + EPSILON) * exact[name]

    def turned(row: np.ndarray, position: int) -> np.ndarray:
        out = row.copy()
        for pair in range(width // 2):
            angle = position * BASE ** (-2 * pair / width)
            one, other = row[2 * pair], row[2 * pair + 1]
            out[2 * pair] = one * math.cos(angle) - other * math.sin(angle)
            out[2 * pair + 1] = one * math.sin(angle) + other * math.cos(angle)
        return out

    rows = [exact["token_embd.weight"][token] for token in tokens]
    for layer in range(LAYERS):
        name = f"blk.{layer}."
        keys: list[list[np.ndarray]] = []
        values: list[list[np.ndarray]] = []
        for position, row in enumerate(rows):
            normed = norm(row, f"{name}attn_norm.weight")
            q, k, v = (exact[f"{name}attn_{part}.weight"] @ normed for part in "qkv")
            keys.append([turned(k[h * width : (h + 1) * width], position) for h in range(KEY_VALUE_HEADS)])
            values.append([v[h * width : (h + 1) * width] for h in range(KEY_VALUE_HEADS)])
            seen = []
            for head in range(HEADS):
                query = turned(q[head * width : (head + 1) * width], position)
                scores = np.array([query @ past[head // shared] / math.sqrt(width) for past in keys])
                shares = np.exp(scores - scores.max())
                shares /= shares.sum()
                seen.append(sum(share * past[head // shared] for share, past in zip(shares, values, strict=True)))
            row = row + exact[f"{name}attn_output.weight"] @ np.concatenate(seen)
            normed = norm(row, f"{name}ffn_norm.weight")
            gate, up = exact[f"{name}ffn_gate.weight"] @ normed, exact[f"{name}ffn_up.weight"] @ normed
            rows[position] = row + exact[f"{name}ffn_down.weight"] @ (gate / (1 + np.exp(-gate)) * up)
    return np.array([exact["token_embd.weight"] @ norm(row, "output_norm.weight") for row in rows])

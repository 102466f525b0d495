"""Caches of keys and values without a model: bounds, streams, products, stored caches, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.propagation import KVCache, baseline_cache, cache_from_dataset, cache_to_dataset
from workbench.propagation.caches.baselines import BASELINES, gaussian_levels, huffman_lengths, shares_of_range
from workbench.propagation.caches.steps import MOST_NUMBER
from workbench.propagation.language import ExactCache
from workbench.propagation.language.arithmetic import angles, rotated

HEADS, GROUP, WIDTH = 2, 3, 24   # queries share keys; a width that is no power of two


def tokens(count, seed=0, width=WIDTH, spread=1.0):
    """Queries, keys and values of some tokens: channels of unequal size, one constant, an outlier at the first token."""
    random = np.random.default_rng(seed)
    scale = spread * np.exp(random.normal(size=(1, 1, width)))
    queries = random.normal(size=(HEADS * GROUP, count, width)) / scale
    keys, values = random.normal(size=(2, HEADS, count, width)) * scale
    keys[..., 0], values[:, 0] = 3.0 * spread, 40 * values[:, 0]
    return tuple(each.astype(np.float32) for each in (queries, keys, values))


def run(cache, given, prompt=128, step=1):
    """What the queries see of the tokens before them, in steps after the prompt."""
    queries, keys, values = given
    found, at = [], 0
    while at < keys.shape[1]:
        stop = prompt if at == 0 else at + step
        cache.append(0, keys[:, at:stop], values[:, at:stop])
        found.append(cache.attend(0, queries[:, at:stop]))
        at = stop
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("coder", ["entropy", "packed"])
def test_token_by_token_is_as_in_stretches_and_later_tokens_change_no_bytes(coder):
    given = tokens(448)
    one, many, short = (KVCache(0.8, 0.5, coder=coder) for _ in range(3))
    single, several = run(one, given), run(many, given, step=64)
    assert np.allclose(single, several, atol=2e-5)
    assert one.bits_per_value == many.bits_per_value
    assert (one.keys(0) == many.keys(0)).all()
    run(short, tuple(each[:, :320] for each in given))
    coded = short.coded_tokens[0]
    assert (short.values(0)[:, :coded] == one.values(0)[:, :coded]).all()
    if coder == "entropy":
        assert one.coded(0).blocks[: len(short.coded(0).blocks)] == short.coded(0).blocks
        assert one.coded(0).blocks == many.coded(0).blocks


@given(
    st.integers(0, 10**6), st.sampled_from([0.01, 0.3, 1.0, 4.0]), st.sampled_from([0.05, 0.6]),
    st.sampled_from(["entropy", "packed"]), st.sampled_from([1e-20, 1.0, 1e15]),
)
@settings(deadline=None, max_examples=30)
def test_keys_values_and_attention_are_within_their_bounds(seed, scores, values, coder, spread):
    given = tokens(320, seed, spread=spread)
    cache, exact = KVCache(scores, values, recent=0, coder=coder), ExactCache()
    seen, right = run(cache, given, step=64), run(exact, given, step=64)
    assert max(cache.certificate.key_error, cache.certificate.value_error) <= 1
    assert abs(exact.values(0) - cache.values(0)).max() <= cache.coded(0).value_limit
    assert (abs(exact.keys(0) - cache.keys(0)) <= cache.coded(0).key_limits[:, None]).all()
    last = given[0][:, -64:]
    rounding = 1e-5 * abs(given[2]).max()
    assert (abs(seen - right)[:, -64:] <= cache.attention_bound(0, last) + rounding).all()


def test_the_attention_bound_holds_for_queries_against_the_errors():
    """Queries along the errors of single keys, as large as the bound stays useful."""
    given = tokens(256, 3)
    cache, exact = KVCache(0.02, 0.1, recent=0), ExactCache()
    run(cache, given, step=64), run(exact, given, step=64)
    cache.append(0, *(each[:, :1] for each in given[1:])), exact.append(0, *(each[:, :1] for each in given[1:]))
    error = cache.keys(0) - exact.keys(0)
    worst = 0.0
    for token in range(0, 256, 8):
        query = np.sign(error[:, token : token + 1]) / cache.coded(0).key_limits[:, None] / np.sqrt(WIDTH)
        asked = np.repeat(query, GROUP, axis=0).astype(np.float32)
        moved, allowed = abs(cache.attend(0, asked) - exact.attend(0, asked)), cache.attention_bound(0, asked)
        assert (moved <= allowed + 1e-5 * abs(given[2]).max()).all()
        worst = max(worst, float((moved / allowed).max()))
    assert worst > 0.01   # the test is near enough to the bound to mean something


def test_keys_before_the_rotation_are_within_their_bounds():
    """Keys that are slow before it, as those of models are: fewer bits, and the same promise after it."""
    queries, keys, values = tokens(448, 7)
    found = angles(np.arange(512), WIDTH, 1000.0)

    def turns(first, count):
        return found[:, first : first + count]

    keys = (np.exp(2 * np.random.default_rng(1).normal(size=(HEADS, 1, WIDTH))) + 0.3 * keys).astype(np.float32)
    given = queries, rotated(keys, turns(0, 448)), values
    exact, after, before = ExactCache(), KVCache(0.5, 0.5), KVCache(0.5, 0.5, turns=turns)
    right, _, seen = (run(cache, given, step=64) for cache in (exact, after, before))
    assert before.bits_per_key < 0.9 * after.bits_per_key
    assert 0.5 < before.certificate.key_error <= 1
    assert (abs(exact.keys(0) - before.keys(0)) <= before.coded(0).key_limits[:, None]).all()
    allowed = before.attention_bound(0, queries[:, -64:])
    assert (abs(seen - right)[:, -64:] <= allowed + 1e-5 * abs(values).max()).all()
    assert before.empty().name == "steps 0.5 of scores, 0.5 of values, before the rotation"
    with pytest.raises(wb.WorkbenchError, match="keys before the rotation have steps and the entropy coder"):
        KVCache(turns=turns, coder="packed")
    stored = cache_to_dataset(before)
    again = cache_from_dataset(stored, turns)
    assert (again.keys(0) == before.keys(0)).all()
    assert again.certificate == before.certificate
    for cache in (before, again):
        run(cache, tuple(each[:, :64] for each in given), prompt=64)
    assert again.coded(0).blocks == before.coded(0).blocks
    with pytest.raises(wb.WorkbenchError, match="coded before the rotation, which needs turns="):
        cache_from_dataset(stored)


def test_packed_attention_is_that_of_the_decoded_tokens():
    given = tokens(400, 2)
    packed, plain = KVCache(1.0, 0.6, coder="packed"), KVCache(1.0, 0.6, block=128)
    assert np.allclose(run(packed, given, step=16), run(plain, given, step=16), atol=1e-5 * abs(given[2]).max())
    assert packed.bits_per_value > plain.bits_per_value


def test_the_order_of_tokens_changes_attention_by_rounding_alone():
    queries, keys, values = tokens(256, 4)
    order, found = np.random.default_rng(0).permutation(256), []
    for which in (np.arange(256), order):
        cache = KVCache(1e-3, 1e-3, recent=0)
        cache.append(0, keys[:, which], values[:, which])
        cache.append(0, keys[:, :1], values[:, :1])   # codes what is before
        found.append(cache.attend(0, queries[:, :1]))
    assert np.allclose(*found, atol=1e-2 * abs(values).max())


def test_scores_are_as_noisy_as_asked_for():
    """The noise of scores is 0.29 of the step for queries like those of the prompt, whatever the scales of the channels."""
    queries, keys, values = tokens(1024, 5, width=64)
    cache = KVCache(1.0, 0.5, recent=0)
    cache.append(0, keys, values)
    cache.attend(0, queries)
    cache.append(0, keys[:, :1], values[:, :1])
    error = (cache.keys(0) - np.concatenate([keys, keys[:, :1]], axis=1)).repeat(GROUP, axis=0)
    noise = (queries @ error.swapaxes(1, 2)).std() / np.sqrt(64)
    assert noise == pytest.approx(1 / np.sqrt(12), rel=0.1)


@pytest.mark.parametrize("stop", [128, 320])
def test_a_stored_cache_goes_on_where_it_was(tmp_path, stop):
    """Whether blocks were coded before (at 320 tokens), or only queries were seen that steps will be made from (at 128)."""
    given = tokens(448)
    whole, half = KVCache(0.8, 0.5), KVCache(0.8, 0.5)
    run(whole, given, step=64)
    run(half, tuple(each[:, :stop] for each in given), step=64)
    wb.compress(cache_to_dataset(half), wb.Exact()).save(tmp_path / "cache.zip")
    again = cache_from_dataset(wb.open(tmp_path / "cache.zip").decompress())
    assert (again.keys(0) == half.keys(0)).all()
    assert again.certificate == half.certificate
    assert np.isclose(again.bits_per_value, half.bits_per_value, rtol=0, equal_nan=True)
    for at in range(stop, 448, 64):
        again.append(0, *(each[:, at : at + 64] for each in given[1:]))
        again.attend(0, given[0][:, at : at + 64])
    assert again.coded(0).blocks == whole.coded(0).blocks
    assert again.certificate == whole.certificate
    assert (again.values(0) == whole.values(0)).all()


def test_bounds_are_kept_by_a_codec():
    given = tokens(320)
    cache = KVCache(keys=wb.Absolute(0.01), values=wb.Relative(1e-3), codec="prequantised")
    run(cache, given, step=64)
    assert abs(cache.keys(0) - given[1]).max() <= 0.01
    assert 0 < cache.certificate.key_error <= 1
    assert 4 < cache.bits_per_value < 20


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_published_codings_keep_constant_channels_and_come_closer_with_more_bits(name):
    settings = [(2, 2), (5, 5)] if name in ("kivi", "hadamard", "turboquant") else [(0.3, 0.3), (0.02, 0.02)]
    given, found = tokens(320, 1, width=32), []
    for keys, values in settings:
        cache = baseline_cache(name, keys, values)
        run(cache, given, step=64)
        coded = cache.coded_tokens[0]
        assert np.isfinite(cache.keys(0)).all()
        if name in ("kivi", "kvcomp"):
            assert np.allclose(cache.keys(0)[..., 0], 3.0, rtol=1e-3)
        found.append((cache.bits_per_value, cache.key_distortion.mean_square, cache.value_distortion.mean_square))
        assert cache.fewest_bits < cache.bits_per_value
        assert coded == 192
    (few, *large), (many, *small) = found
    assert few < many
    assert all(a > 4 * b for a, b in zip(large, small, strict=True))


def test_a_step_of_range_is_what_published_codings_err_by():
    """KVComp's error is half a step of the range of its group, as its description says, in float64."""
    random = np.random.default_rng(0)
    keys = random.normal(size=(1, 64, 8)).astype(np.float32)
    cache = baseline_cache("kvcomp", 0.1, 0.1, recent=0)
    cache.append(0, keys, keys)
    cache.append(0, keys[:, :1], keys[:, :1])
    assert (abs(cache.keys(0)[:, :64] - keys).max(axis=1) <= 0.0501 * np.ptp(keys, axis=1)).all()
    assert (abs(cache.values(0)[:, :64] - keys).max(axis=2) <= 0.0501 * np.ptp(keys, axis=2)).all()


def test_what_is_counted_as_16_bits_has_16_bits():
    """A step is a number of float16 and a zero point one of int16, also where a channel is far from zero, or constant."""
    random = np.random.default_rng(0)
    spread, centre = np.exp(2 * random.normal(size=(50, 1, 1, 8))), 100 * random.normal(size=8)
    blocks = spread * random.normal(size=(50, 1, 64, 8)) + centre
    blocks[..., 0] = 3.3
    for share in (0.3, 0.01, 1e-4):
        numbers, decoded, groups = shares_of_range(blocks, 2, share)
        assert groups == 400
        steps = np.ptp(decoded[..., 1:], axis=2) / np.ptp(numbers[..., 1:], axis=2)
        assert np.allclose(steps, np.float16(steps), rtol=1e-9, atol=0)
        assert abs(np.rint(decoded[:, :, 0, 1:] / steps) - numbers[:, :, 0, 1:]).max() < 2**15
        assert abs(decoded[..., 0] - 3.3).max() < 1e-4 * 3.3


def test_codes_and_levels_are_the_known_ones():
    assert gaussian_levels(2) == pytest.approx([-1.51, -0.4528, 0.4528, 1.51], abs=1e-3)   # Max 1960
    counts = np.random.default_rng(0).integers(1, 1000, 40)
    lengths = huffman_lengths(counts)
    assert (2.0 ** -lengths).sum() == 1
    entropy = -(counts / counts.sum() * np.log2(counts / counts.sum())).sum()
    assert entropy <= (lengths * counts).sum() / counts.sum() < entropy + 1


def test_what_is_refused_is_said():
    good = tokens(256)
    bad = [each.copy() for each in good]
    bad[1][0, 5, 2] = np.nan
    with pytest.raises(wb.WorkbenchError, match="keys must be finite to be coded; got NaN or infinity in layer 0"):
        run(KVCache(), bad)
    for arguments, message in (
        ({"score_step": 0.0}, "score_step must be positive"), ({"value_step": -1.0}, "value_step must be positive"),
        ({"coder": "zip"}, "coder must be one of entropy, packed"),
        ({"coder": "packed", "block": 64}, "packed blocks must have a multiple of 128 tokens; got 64"),
        ({"keys": wb.Absolute(0.1)}, "keys and values must both be bounds"), ({"recent": -1}, "recent must be"),
        ({"score_step": []}, "score_step must have an entry for each layer"), ({"codec": 3}, "codec must be one of"),
    ):
        with pytest.raises(wb.WorkbenchError, match=message):
            KVCache(**arguments)
    with pytest.raises(wb.WorkbenchError, match=f"at most {MOST_NUMBER:,} steps"):
        run(KVCache(score_step=1e-7), good, step=64)
    cache = KVCache(score_step=[1.0, 2.0])
    for layer in range(3):
        cache.append(layer, *good[1:])
    with pytest.raises(wb.WorkbenchError, match="got 2, and layer 2 asks for one"):
        cache.append(2, *good[1:])
    with pytest.raises(wb.WorkbenchError, match="a Hadamard rotation needs a head width that is a power of two; got 24"):
        run(baseline_cache("hadamard"), good)
    with pytest.raises(wb.WorkbenchError, match="name must be one of"):
        baseline_cache("gzip")
    with pytest.raises(wb.WorkbenchError, match="only a cache with coder='entropy'"):
        cache_to_dataset(KVCache(coder="packed"))


@pytest.mark.parametrize("coder", ["entropy", "packed"])
def test_a_gpu_gives_the_same_bits_and_attention(stand_in, coder):
    given = tokens(400, 6)
    here, there = KVCache(1.0, 0.6, coder=coder), KVCache(1.0, 0.6, coder=coder)
    exact = run(here, given, step=16)
    queries, keys, values = (stand_in.asarray(each) for each in given)
    found = []
    for start, stop in [(0, 128), *((at, at + 16) for at in range(128, 400, 16))]:
        there.append(0, keys[:, start:stop], values[:, start:stop])
        found.append(there.attend(0, queries[:, start:stop]).get())
    assert there.bits_per_value == here.bits_per_value
    assert np.allclose(np.concatenate(found, axis=1), exact, atol=1e-5 * abs(given[2]).max())

import hashlib
import itertools
import math
import zlib
from base64 import b85decode

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slow_interpolation import Decoder
from turbulence import turbulent
from workbench import backend
from workbench.codecs import CodecFailed, Tolerance, get
from workbench.codecs.interpolation import _HEADER, _Encoding
from workbench.codecs.interpolation_grid import coarsest, every, four_axes, passes
from workbench.codecs.interpolation_stream import blocks_of, counted, grouped
from workbench.codecs.pieces import join, split
from workbench.codecs.prequantised import lattice_step
from workbench.errors import WorkbenchError

shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


def layered(layers=8, size=96):
    """Layers that differ at random, each smooth."""
    rng = np.random.default_rng(5)
    smooth = np.cumsum(np.cumsum(turbulent((size, size)), axis=0), axis=1) / size
    return (rng.normal(size=(layers, 1, 1)) * 30 + smooth + turbulent((layers, size, size))).astype(np.float32)


def encoded(values, size, **options):
    return get("interpolation", **options).encode(values, Tolerance(absolute=size))


def bits(values, size, **options):
    return 8 * len(encoded(values, size, **options)) / values.size


@given(shapes, st.sets(st.integers(0, 3)))
def test_passes_reach_every_point_once_and_look_only_at_points_before(shape, frozen):
    four = four_axes(shape)
    frozen = tuple(sorted(frozen))
    known = np.zeros(four, bool)
    known[every(coarsest(four, frozen), frozen)] = True
    for each in passes(four, frozen):
        axes = [range(a, a + n * by, by) for a, n, by in zip(each.first, each.count, each.step, strict=True)]
        targets = np.array(list(itertools.product(*axes)))
        assert len(targets) == each.targets > 0
        assert not known[tuple(targets.T)].any()
        offsets = [{axis: by * each.spacing} for axis in each.odd for by in (-3, -1, 1, 3)]
        offsets += [{a: i * each.spacing, b: j * by} for a, b, by in each.pairs for i in (-1, 1) for j in (-1, 1)]
        for offset in offsets:
            seen = targets + [offset.get(axis, 0) for axis in range(4)]
            assert known[tuple(seen[((seen >= 0) & (seen < four)).all(axis=1)].T)].all()
        known[tuple(targets.T)] = True
    assert known.all()


@given(shapes, st.integers(0, 6))
def test_blocks_cover_all_targets_and_a_block_in_several_passes_stands_alone(shape, size):
    order = passes(four_axes(shape), ())
    begin, groups = blocks_of(order, 1 << size)
    before = list(itertools.accumulate((each.targets for each in order), initial=0))
    assert begin[0] == 0
    assert begin[-1] == before[-1]
    assert (np.diff(begin) > 0).all()
    assert (np.diff(begin) <= 1 << size).all()
    assert [block for group in groups for block in group] == list(range(len(begin) - 1))
    for group in groups:
        touched = [n for n in range(len(order)) if before[n] < begin[group.stop] and begin[group.start] < before[n + 1]]
        assert len(group) == 1 or len(touched) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "frozen"), [
    ((700,), ()), ((37, 41), ()), ((9, 14, 11), ()), ((5, 20, 17), (0,)), ((3, 6, 9, 10), (1,)), ((2, 5, 3, 30), (0, 2)),
    ((1, 40), ()), ((4, 5, 6), (0, 1, 2)), ((2, 2, 2, 2), ()),
])
def test_kernels_decode_what_plain_python_decodes(shape, frozen, dtype):
    random = np.random.default_rng(0).normal(size=shape).astype(dtype)
    values = turbulent(shape, dtype) if math.prod(shape) > 100 else random
    values.reshape(-1)[3::97] *= 1e6   # some are kept as they are
    for size in (1e-3, 0.3):
        data = encoded(values, size, frozen=frozen, block=4096)
        slow = Decoder(data, shape, np.dtype(dtype)).decode().reshape(shape)
        assert get("interpolation").decode(data, shape, dtype).tobytes() == slow.tobytes()


@settings(max_examples=30)
@given(data=st.data(), shape=shapes, size=st.floats(1e-6, 10))
def test_any_axes_may_be_frozen(data, shape, size):
    frozen = data.draw(st.sets(st.integers(0, len(shape) - 1)).map(sorted).map(tuple))
    values = np.random.default_rng(len(shape)).normal(size=shape)
    code = encoded(values, size, frozen=frozen)
    assert np.abs(get("interpolation").decode(code, shape, "f8") - values).max() <= size


@pytest.mark.parametrize(("distribution", "size"), [("normal", 0.3), ("normal", 0.01), ("laplace", 0.3)])
def test_white_noise_takes_no_more_than_its_entropy(distribution, size):
    values = getattr(np.random.default_rng(0), distribution)(size=(512, 512)).astype(np.float32)
    count = np.unique(np.rint(values / (2 * size)), return_counts=True)[1] / values.size
    assert bits(values, size) <= -(count * np.log2(count)).sum() + 0.02


def test_an_autoregression_takes_little_more_than_its_innovations():
    from scipy.signal import lfilter

    values = np.random.default_rng(1).normal(size=(600, 600))
    for axis in (0, 1):   # the recursion x[i] = 0.95 x[i - 1] + ..., begun before the field
        values = lfilter([1], [1, -0.95], values, axis=axis)
    values = np.ascontiguousarray(values[100:, 100:], np.float32)
    for size, more in ((0.3, 0.15), (0.01, 0.09)):
        assert 0 < bits(values, size) - bits_of_innovations(size) < more


def test_borders_cost_little():
    steps = np.random.default_rng(2).normal(size=(5, 20, 300))
    values = np.cumsum(np.cumsum(steps, axis=1), axis=2)
    assert bits(values, 0.1, frozen=(0,)) < bits_of_innovations(0.1) + 0.6


def bits_of_innovations(size):
    """The bits of a normal distribution with a variance of 1, in steps of twice the bound."""
    return math.log2(math.sqrt(2 * math.pi * math.e) / (2 * size))


def test_plain_fields_take_nearly_nothing():
    x, y = np.meshgrid(np.arange(300.0), np.arange(200.0))
    three = np.random.default_rng(0).integers(0, 3, (10, 15)).repeat(20, axis=0).repeat(20, axis=1)
    assert len(encoded(np.full((200, 300), 3.3), 0.01)) < 200
    assert len(encoded(3 * x - 2 * y, 0.01)) < 200
    assert bits(three.astype(np.float32), 0.01) < 0.7


def test_a_field_takes_less_than_with_differences_of_a_lattice():
    values = np.cumsum(turbulent((200, 200)), axis=0)
    for share in (1e-2, 1e-3):
        size = share * float(np.ptp(values))
        assert len(encoded(values, size)) < 0.9 * len(get("prequantised").encode(values, Tolerance(absolute=size)))


@pytest.mark.parametrize("scale", [1e-310, 1e306])
def test_extreme_values_are_encoded_without_a_warning(scale):
    values = turbulent((30, 40), np.float64) * scale
    size = 1e-3 * float(np.ptp(values))
    codec = get("interpolation").tuned(values, Tolerance(absolute=size))
    assert np.abs(codec.decode(codec.encode(values, Tolerance(absolute=size)), values.shape, "f8") - values).max() <= size


def test_layers_are_found_and_frozen():
    values = layered()
    chosen = get("interpolation").tuned(values, Tolerance(absolute=0.05))
    assert chosen.frozen == (0,)
    assert bits(values, 0.05, frozen=(0,)) < 0.9 * bits(values, 0.05, frozen=())
    assert bits(values, 0.05) == bits(values, 0.05, frozen=chosen.frozen, block=chosen.block)
    assert get("interpolation").tuned(turbulent((40, 40, 40)), Tolerance(absolute=0.05)).frozen == ()


def test_what_is_tuned_needs_neither_finite_values_nor_a_fine_lattice():
    values = layered()
    values[:, 40:60, 40:60] = np.nan
    values[0, 0, 0] = np.inf
    codec = get("interpolation")
    assert codec.tuned(values, Tolerance(absolute=0.05)).frozen == (0,)
    for others in (np.full_like(values, np.nan), values[None, None], np.zeros((9, 9), np.int32)):
        assert codec.tuned(others, Tolerance(absolute=0.05)) == codec
    for tolerance in (Tolerance(absolute=0), Tolerance(absolute=1e-300), Tolerance(relative=0.1)):
        assert codec.tuned(layered(), tolerance) == codec


def test_the_code_is_as_long_as_its_symbols_and_what_follows_them():
    values = turbulent((300, 300))
    for size in (1e-1, 1e-3):
        step = lattice_step(size, float(np.abs(values).max()), values.dtype)
        found = _Encoding.of(values, (), 13, size, step)
        assert len(found.to_bytes()) * 8 == pytest.approx(found.bits, rel=0.03)


def test_grouping_contexts_costs_no_more_than_one_table_or_all():
    counts = counted(_Encoding.of(turbulent((100, 100)), (), 13, 0.01, 0.02).coded.code)
    groups = grouped(counts)
    assert [a for a, _ in groups] == [0, *(b for _, b in groups[:-1])]
    assert groups[-1][1] == 64
    used = counts[counts.sum(axis=1) > 0]
    assert 1 < len(groups) <= len(used)


def test_values_out_of_reach_are_kept_as_they_are():
    values = turbulent((60, 60)).astype(np.float64)
    values[30, 30], values[0, 0], values[59, 59] = 1e15, -1e15, 1e-300
    decoded = get("interpolation").decode(encoded(values, 1.0), values.shape, "f8")
    assert np.abs(decoded - values).max() <= 1.0


@pytest.mark.parametrize(("options", "message"), [
    ({"frozen": (4,)}, "numbers from 0 to 3"), ({"frozen": (1, 1)}, "different axes"), ({"frozen": 1}, "got 1"),
    ({"frozen": (True,)}, "numbers from 0 to 3"), ({"block": 5000}, "power of two"), ({"block": 64}, "from 4096"),
])
def test_options_are_checked(options, message):
    with pytest.raises(WorkbenchError, match=message):
        get("interpolation", **options)


def test_an_axis_that_the_field_does_not_have_cannot_be_frozen():
    with pytest.raises(CodecFailed, match="frozen axes must be among the 2 of the field"):
        encoded(turbulent((20, 20)), 0.1, frozen=(2,))


def forged(data, values, change):
    """The bytes with a change behind their checksum, and the checksum made right."""
    ((_, body),) = split("interpolation", data, values.shape, values.dtype)
    changed = bytearray(body)
    change(changed)
    return join("interpolation", [bytes(changed)], values.shape, values.dtype, 2**28)


def test_a_damaged_block_is_named():
    values = turbulent((200, 200))
    data = encoded(values, 0.001, block=4096)

    def damage(body):
        body[-100] ^= 4

    with pytest.raises(CodecFailed, match=r"block \d+ of \d+, with spacing \d+, does not decode"):
        get("interpolation").decode(forged(data, values, damage), values.shape, values.dtype)


def test_a_machine_that_computes_otherwise_is_noticed():
    values = turbulent((200, 200))
    data = encoded(values, 0.001, block=4096)

    def another_step(body):   # by so little that no value moves by a hundredth of the bound
        step, *rest = _HEADER.unpack_from(body)
        _HEADER.pack_into(body, 0, step * (1 + 1e-6), *rest)

    with pytest.raises(CodecFailed, match="this machine computes otherwise"):
        get("interpolation").decode(forged(data, values, another_step), values.shape, values.dtype)


@pytest.mark.parametrize("seed", range(4))
def test_forged_bytes_are_refused_or_decoded_to_something(seed):
    values, random = turbulent((40, 50)), np.random.default_rng(seed)
    data = encoded(values, 0.01, block=4096)

    def change(body):
        for place in random.integers(0, min(len(body), int(random.choice([30, 200, len(body)]))), random.integers(1, 4)):
            body[place] = random.integers(256)

    def inner(body):   # reaches what is deflated
        *head, coarse, tables = _HEADER.unpack_from(body)
        start = _HEADER.size + coarse
        side = bytearray(zlib.decompress(bytes(body[start : start + tables])))
        for place in random.integers(0, len(side), 2):
            side[place] = random.integers(256)
        body[start : start + tables] = (packed := zlib.compress(bytes(side)))
        _HEADER.pack_into(body, 0, *head, coarse, len(packed))

    refused = 0
    for made in [forged(data, values, how) for how in [change, inner] * 40]:
        try:
            assert get("interpolation").decode(made, values.shape, values.dtype).shape == values.shape
        except CodecFailed:
            refused += 1
    assert refused > 40


def test_an_inflated_table_is_stopped():
    values = turbulent((40, 50))

    def bomb(body):
        *head, coarse, tables = _HEADER.unpack_from(body)
        start = _HEADER.size + coarse
        body[start : start + tables] = (packed := zlib.compress(bytes(10**8)))
        _HEADER.pack_into(body, 0, *head, coarse, len(packed))

    with pytest.raises(CodecFailed, match="must have at most"):
        get("interpolation").decode(forged(encoded(values, 0.01), values, bomb), values.shape, values.dtype)


def test_bytes_do_not_depend_on_the_number_of_threads():
    values = turbulent((64, 64, 16))
    found = set()
    for threads in (1, 3):
        with backend.using_threads(threads):
            data = encoded(values, 1e-3, frozen=(), block=4096)
            found.add((data, get("interpolation").decode(data, values.shape, values.dtype).tobytes()))
    assert len(found) == 1


def test_bytes_of_an_earlier_day_decode_to_the_same_values():
    decoded = get("interpolation").decode(b85decode(STORED), (12, 10, 9), "float32")
    assert hashlib.sha256(decoded.tobytes()).hexdigest()[:16] == STORED_HASH


STORED = (
    '`f8Lk0A&-dN8NgqKL7v#z$8$TKmaBH004^s002G0YK;H{096yNC*69aKX7AjAp-zF1OWp80000G01yBG00aO4c-n1EF%H5o47`2-dCU@F2~|jGLrs(fQ'
    'Y6H~Sa<=CV(FLIh+6~$oGtt8lYIcNY9?HGCwqypccGWid3TD(972-wm_|8-R7!~{i{$7#Ke*O!TV^I>EurQTFnELTg~2cAQ>tpU^CGZ*sho_SsbWYyu+'
    'd?*Aey&-tO)l8xK*}(ULP-nsS-6(0+RM3A@EQyFe66q;9o)w5QWIh)sAUeBn=5x*%NgEI;&WbqY+zMseBr5rbMxTnuIBMU6$oQ!j7UaQCmlaOO>3+S&&'
    '!6a`bHF={)2lSwDVAb;Axk-o}Gg{GkOq>awN8#{|WCxui<rsS$_6?NFM=7ozuQb|0e*Xq-J4b*iDsvS)on%4Jw)L5d*y*2-8tr_yU7NvX<;4rIqknY*X'
    'em<?&=VKY#g0g}pJ(XF>_T|@IhI|bMCWczyzG*j4|aS;zHKIqPFfbJGm3)#@u(C;s=BOn)-kX}i3+rmKy=3GbFbSt9%-m=zy_^d5Tn8Nu>CK(eq2Yhhc'
    'Hy}yz=_-c$7rSSz$KMFJIte23Z`YJ$7vg)Td^paH3U3_4Co#kK3E@&EDhfM@4M4rt0`LQyEWjjm5f&^M|3ZC08;-)uTsAX?SB+{jD@3ppR>^3MPLxE%>'
    'F!W}B87S)@O<+%fgxu=sNl?g3&#h-LE=;<8>zP5Y(1*wSJJa6r8O+_f);$>PQWBnxxzGlbMkLpEjwKB?o+l*4;^I~qzaOF^0el2{LhZ5e?^1687{9vzf'
    'nXUGu{0%J&lhu2AH>}(%lbYwS-qR#eBr+=bg}HB_F`EECkp%=?*w0)uo6y!&C8sF$llvwyu#z<BBPRxc7|3`qcUZav=i-1Sg{<OuXm84L}JT1F<XazJ4'
    'Z;j*}t&*eQ?88Ia$U=hf^v;TqTlWOA@CA=eAnPfG>DOO#@Z#G!6~qle1U=+lvyv^Q%e!Wv91r5}g{p`$bzMku-Cd|gJ17yGWYCM!P9zrgL!$#mD?Vae!'
    'xyA+#Uj#rQI77V0Y5y6n8MJaj;GDYusU(6}h^-@a*RJZW#CMqDhZwbGbnJJQu#)OL=VT=r+pEJ&RJOwYYo&}Awgk5PQ^sqnO9ONzP-(hxrp5*n608!+r'
    '`skeibp=EG1WV4a-k`(rL{~7pVFU-KorxsfHs?Z}b&}_<^A4~>_fr+3N8L^yiDFYgzA=2oS(H-UKFF@VEg%9O&Iy1gR%#q7og7{GV9rybUJ)5jy}I{nc'
    '_?81q8+LTjnxWr45HvNizopL|NqeE9#Yh<RGqh6V<S>}sJz!>;?V#JoctJ~q3-}45KQ6$+ZnIe)@1s<ntjM7bIMA@`P>XW?_A0@6R9M=zKPQlcFiKSVH'
    'bWuTFIo+kC^eg+Sv^`6zz0I<M0{n)(JIyR>n<SB*WD}ee840#^!Nr+`%GwVYuyeeI9T!Gt97Wt#k6*1e!?`*ykd$B_K3aXcXfqFcjZ)eNHChm#pT%IP-'
    'jK9S+FbwJ*tC;>T{mVK#x1iiD13%W@6IV_ZT>eotFFju(OOHySnpch?_mA4{-GoII3ZnK*g77{KgqVI8w&7d-9uHkG!AQY6$?rb6Ai>@C1Vq_l%X#X%h'
    'm&mz<-F5Y#KDDg7A>*6m=YE#btO?!?}2sNhRr|MH*>)cL2T$TU+Gn_GLS!RYT9K6&fv>YKCw>Op9?CHn>fxuuR%}`{+BCnUA=u6#-IIe@^i35T5;RPCZ'
    'vG#-Ji{h8Yb7VMHiniPRFsbpTS3m9yJ`rv`r7!q)SlW<kFiQ|O1lCoVHEi+%j?^w*1PcKdU0p<3mpNGdmD@VZ)}NO+X>m+XnTjvjv^4CfvSSz*To^l$6'
    '41o3J9V|9qq?MiTM}1+xc!r3=$-SO)k_nAlr5UKcQ7=MEC'
)
STORED_HASH = "d9547e1d5f2482fc"

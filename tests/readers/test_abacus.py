"""Abacus particles: packed integers and floats, with and without Blosc, and other ASDF files."""

import struct

import asdf
import blosc
import numpy as np
import pytest
from asdf.extension import Compressor, Extension

from workbench import WorkbenchError
from workbench.data.readers import open_file

LENGTH = 2000.0
HEADER = {"BoxSize": LENGTH, "Redshift": 0.5, "SimName": "AbacusSummit_test", "Omega_M": 0.31}


class Pieces(Compressor):
    """What Abacus does to a block: Blosc on pieces, each with its size in front."""

    label = b"blsc"

    def compress(self, data, **options):
        content = bytes(data)
        for start in range(0, len(content), 256):
            piece = blosc.compress(content[start : start + 256], typesize=4, cname="zstd", shuffle=blosc.SHUFFLE)
            yield struct.pack("!I", len(piece)) + piece

    def decompress(self, data, out, **options):
        raise NotImplementedError


class AsAbacusWrites(Extension):
    extension_uri = "asdf://somewhere.org/extensions/abacus-0.0.1"
    compressors = (Pieces(),)


def write(path, columns, header=HEADER, compression="blsc"):
    with asdf.config_context() as config:
        config.add_extension(AsAbacusWrites())
        asdf.AsdfFile({"header": header, "data": columns}).write_to(path, all_array_compression=compression)
    return path


def packed(count):
    """Integers that hold known positions and velocities."""
    generator = np.random.default_rng(0)
    steps = generator.integers(-500_000, 500_000, (count, 3), dtype=np.int32)
    speeds = generator.integers(0, 4096, (count, 3), dtype=np.int32)
    return steps, speeds, ((steps << 12) | speeds).astype(np.int32)


@pytest.mark.parametrize("compression", ["blsc", None, "zlib"])
def test_packed_positions_and_velocities(tmp_path, compression):
    steps, speeds, rvint = packed(300)
    ids = np.arange(300, dtype=np.uint64)
    path = write(tmp_path / "halo_rv_A_000.asdf", {"rvint": rvint, "packedpid": ids}, compression=compression)
    particles = open_file(path)
    expected = steps * (LENGTH / 1e6)
    np.testing.assert_allclose(particles.positions, np.where(expected < 0, expected + LENGTH, expected), atol=2e-4)
    np.testing.assert_allclose(particles.velocities, (speeds - 2048) * (6000 / 2048), rtol=1e-6)
    assert particles.positions.dtype == np.float32
    assert particles.box == (LENGTH,) * 3
    np.testing.assert_array_equal(particles.ids, ids)
    metadata = particles.metadata
    assert (metadata["redshift"], metadata["omega_m"], metadata["simulation"]) == (0.5, 0.31, "AbacusSummit_test")


@pytest.mark.parametrize("compression", ["blsc", None])
def test_a_block_may_be_larger_than_its_array(tmp_path, compression):
    rvint = packed(300)[2]
    path = write(tmp_path / "a.asdf", {"rvint": rvint}, compression=compression)
    content = path.read_bytes()
    assert content.count(b"shape: [300, 3]") == 1
    (tmp_path / "b.asdf").write_bytes(content.replace(b"shape: [300, 3]", b"shape: [290, 3]"))
    np.testing.assert_array_equal(open_file(tmp_path / "b.asdf").positions, open_file(path).positions[:290])


def test_positions_and_velocities_as_floats(tmp_path):
    positions = np.array([[-1000.0, 0.0, 999.5], [250.0, -0.25, 1000.0]], np.float32)
    particles = open_file(write(tmp_path / "a.asdf", {"pos": positions, "vel": positions}))
    assert particles.positions.tolist() == [[1000.0, 0.0, 999.5], [250.0, 1999.75, 1000.0]]
    np.testing.assert_array_equal(particles.velocities, positions)
    assert open_file(tmp_path / "a.asdf", box=None).positions.min() == -1000


@pytest.mark.parametrize(
    ("columns", "header", "message"),
    [
        ({"N": np.ones(3)}, HEADER, "no column rvint, pack9 or pos; its columns are N"),
        ({"rvint": np.ones(3, np.int32)}, {}, "expected BoxSize in a header; got None"),
        ({"rvint": np.ones(4, np.int32)}, HEADER, "rvint must hold three int32 per particle"),
        ({"rvint": np.ones(3, np.float64)}, HEADER, "rvint must hold three int32 per particle; got float64"),
    ],
)
def test_asdf_files_without_particles(tmp_path, columns, header, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(write(tmp_path / "a.asdf", columns, header))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.99])
def test_truncated_files(tmp_path, share):
    path = write(tmp_path / "a.asdf", {"rvint": packed(300)[2]})
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(WorkbenchError):
        open_file(path)


def test_a_block_whose_pieces_do_not_fit(tmp_path):
    path = write(tmp_path / "a.asdf", {"rvint": packed(300)[2]})
    content = bytearray(path.read_bytes())
    at = content.index(b"\xd3BLK") + 6 + 48   # the first piece, after the block's header
    content[at : at + 4] = struct.pack("!I", 17)
    path.write_bytes(content)
    with pytest.raises(WorkbenchError, match="does not have its stated size"):
        open_file(path)


def document(body):
    head = "#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n%YAML 1.1\n--- !core/asdf-1.1.0\n"
    return f"{head}{body}\ndata: {{rvint: {{source: 0, datatype: int32, shape: [1, 3], byteorder: little}}}}\n...\n"


def levels(before, after):
    """Each line refers ten times to the line before."""
    tens = [", ".join([f"*l{number}"] * 10) for number in range(8)]
    lines = [f"  l{number + 1}: &l{number + 1} {before}{ten}{after}" for number, ten in enumerate(tens)]
    return document("\n".join(["header:", "  l0: &l0 {a: 1}", *lines]))


@pytest.mark.parametrize(("content", "message"), [
    (levels("[", "]"), r"at most 262,144 values in its document"),
    (levels("{<<: [", "]}"), r"it merges mappings"),
    (document("header: &a [*a]"), r"at most 262,144 values in its document|truncated"),
    (document("header: " + "[" * 50_000 + "]" * 50_000), r"at most 100 values within each other"),   # it crashed Python
    (document("header: {a: " + "x" * 2**18 + "}"), r"the document at the beginning must have less than 262,144 bytes"),
])
def test_documents_that_would_never_end_are_refused(file, content, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(file(content))

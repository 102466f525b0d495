"""What an archive from a file may make its reader do: which codecs decode it, and to how many bytes."""

import inspect
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.forging import with_configuration, with_payload
from archive.samples import CODECS, assert_equal, from_parts, parts, resealed
from workbench.archive import Archive, Damaged
from workbench.archive.trust import Trust
from workbench.archive.writing import write
from workbench.codecs import registry
from workbench.codecs.codec import ParticleCodec
from workbench.codecs.isolation import Isolated
from workbench.errors import WorkbenchError

needs_sz3 = pytest.mark.skipif("sz3" not in CODECS, reason="sz3 is not installed")


@pytest.fixture
def path(tmp_path):
    """Particles by SZ3 or, where it is not installed, by a built-in codec."""
    codec = "sz3" if "sz3" in CODECS else "prequantised"
    return wb.compress(samples.particles(), wb.Absolute(0.1), codec, velocities=wb.Absolute(1)).save(tmp_path / "some.zip")


# Codecs.

@needs_sz3
def test_a_codec_that_is_not_allowed_is_refused_by_name(path):
    with pytest.raises(WorkbenchError, match=r"positions in some.zip needs the codec 'sz3', and codecs= allows 'zfp'"):
        wb.open(path, codecs=["zfp"])
    with pytest.raises(WorkbenchError, match="and codecs= allows built-in ones only: add it there"):
        Archive.open(path, codecs=[])
    for allowed in ("sz3", ["zfp", "sz3"], {"sz3"}):
        assert_equal(wb.open(path, codecs=allowed).decompress(), wb.open(path).decompress())


@pytest.mark.parametrize("codec", registry.built_in())
def test_built_in_codecs_are_always_allowed(codec, tmp_path):
    if registry.codec_class(codec).beside_positions:
        data = wb.synthetic.cosmic_web(n=8, seed=1)
        made = wb.compress(data, wb.Absolute(0.1), velocities=wb.Absolute(1.0), column_codec=codec)
    else:
        of_particles = issubclass(registry.codec_class(codec), ParticleCodec)
        data = samples.particles(100) if of_particles else samples.field()
        made = wb.compress(data, wb.Absolute(0.1), codec)
    assert wb.open(made.save(tmp_path / "some.zip"), codecs=[]).verify(data).passed


def test_the_codec_inside_columns_counts(tmp_path):
    saved = wb.compress(samples.particles(100), wb.Absolute(0.1), "zfp").save(tmp_path / "some.zip")
    with pytest.raises(WorkbenchError, match=r"positions in some.zip needs the codec 'zfp'"):
        wb.open(saved, codecs=["sz3"])
    assert len(wb.open(saved, codecs=["zfp"]).decompress()) == 100


def test_the_library_of_a_codec_that_is_not_allowed_is_not_imported(tmp_path):
    made = wb.compress(samples.field(), wb.Absolute(0.1), "pcodec")
    changed = with_configuration(made, "values", codec={"id": "sperr"})
    program = (
        "import sys\nimport workbench as wb\ntry: wb.open(sys.argv[1], codecs=[])\n"
        "except wb.WorkbenchError as error: print(error)\nprint('hdf5plugin' in sys.modules)"
    )
    saved = write(tmp_path / "some.zip", changed.items())
    done = subprocess.run([sys.executable, "-c", program, saved], capture_output=True, text=True, check=True)
    assert "needs the codec 'sperr'" in done.stdout
    assert done.stdout.endswith("False\n")


# Bytes.

def test_no_call_decodes_to_more_bytes_than_allowed(tmp_path):
    values = np.zeros((64, 64, 64), np.float32)
    made = wb.compress(values, wb.Absolute(0.1), "pcodec", chunk_values=32**3)
    saved, whole = made.save(tmp_path / "some.zip"), values.nbytes
    opened = wb.open(saved, most_bytes=whole - 1)
    said = f"takes {whole:,} bytes once decoded, and most_bytes= allows {whole - 1:,}"
    for use in (opened.decompress, opened.salvage, opened.data.values):
        with pytest.raises(WorkbenchError, match=said):
            use()
    assert opened.read([(0, 64), (0, 64), (0, 63)]).values.shape == (64, 64, 63)
    small = wb.open(saved, most_bytes=whole // 8)
    assert small.read([(8, 40)] * 3).values.shape == (32, 32, 32)
    with pytest.raises(WorkbenchError, match="the region takes"):
        small.read([(8, 40), (8, 40), (8, 41)])
    assert small.verify().figures["chunks"] == 8   # one chunk after the other
    with pytest.raises(WorkbenchError, match="a chunk of values takes 131,072 bytes"):
        wb.open(saved, most_bytes=whole // 8 - 1)
    assert wb.open(saved, most_bytes=whole).verify(wb.Field(values)).passed


@pytest.mark.parametrize("codec", ["lattice", "pcodec"])
def test_regions_of_particles_count_what_they_hold(codec, tmp_path):
    made = wb.compress(samples.particles(4000), wb.Absolute(0.01), codec, order="free", chunk_values=1500)
    opened = wb.open(made.save(tmp_path / "some.zip"), most_bytes=16_000)
    with pytest.raises(WorkbenchError, match=r"takes .* bytes once decoded"):
        opened.decompress()
    with pytest.raises(WorkbenchError, match="the region takes"):
        opened.read([(0, 10)] * 3)
    assert len(opened.read([(0, 1), (0, 4), (0, 4)])) > 0


PROGRAM = """
import pathlib, sys
import numpy as np
import workbench as wb
opened = wb.open(sys.argv[1], most_bytes=2**20)
peak = lambda: int(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
before = peak()
for use in (opened.decompress, opened.salvage, lambda: opened.read([(0, 2**28)]), opened.data.values):
    try:
        use()
    except wb.WorkbenchError as error:
        print("refused" if "once decoded" in str(error) else error)
print(peak() - before)
"""


def test_memory_is_not_taken_before_the_refusal(tmp_path):
    """A gigabyte of zeros in a few kilobytes, legitimately."""
    made = wb.compress(np.zeros(2**20, np.float32), wb.Absolute(0.1), "pcodec", chunk_values=2**16)
    entries, count = parts(made), 2**12
    chunk = entries["values/c/0"]
    entries |= {f"values/c/{k}": chunk for k in range(count)}

    def many(document):
        document.update(shape=[count * 2**16])
        document["attributes"]["lossbench:chunks"] = document["attributes"]["lossbench:chunks"][:8] * count

    saved = from_parts(resealed(entries, "values/zarr.json", many)).save(tmp_path / "some.zip")
    done = subprocess.run([sys.executable, "-c", PROGRAM, saved], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:-1] == ["refused"] * 4
    assert int(done.stdout.split()[-1]) < 50_000   # kilobytes


# Where.

def test_files_are_decoded_in_another_process_and_what_was_just_made_is_not(tmp_path):
    made = wb.compress(samples.field(), wb.Absolute(0.1), "zfp")
    saved = made.save(tmp_path / "some.zip")
    assert isinstance(wb.open(saved).data.decoder, Isolated)
    assert made.data.decoder is made.codec
    assert wb.open(saved, isolate=False).data.decoder == made.codec
    assert wb.open(saved).codec == made.codec
    for opened in (wb.open(saved), wb.open(saved, isolate=False), Archive.open(saved)):
        assert_equal(opened.decompress(), made.decompress())


def test_what_is_decoded_here_does_nothing_harmful_whatever_it_gets(tmp_path):
    made = wb.compress(samples.particles(), wb.Absolute(0.1), order="free")
    opened = wb.open(made.save(tmp_path / "some.zip"))
    assert {name: type(stored.decoder).__name__ for name, stored in opened.arrays.items()} == {
        "positions": "LatticeCodec", "extents": "PCodec", "velocities": "Columns", "ids": "PCodec",
    }


def test_where_points_went_is_found_in_another_process(tmp_path, monkeypatch):
    pytest.importorskip("DracoPy")
    original = samples.particles()
    made = wb.compress(original, wb.Absolute(0.1), "draco", order="free")
    opened = wb.open(made.save(tmp_path / "some.zip"))
    expected = made.permutation(original)
    monkeypatch.setattr(type(made.codec), "permutation", lambda *_: pytest.fail("it was decoded here"))
    np.testing.assert_array_equal(opened.permutation(original), expected)
    with pytest.raises(WorkbenchError, match=r"^the permutation needs the positions that were encoded; "):
        opened.permutation(samples.particles(seed=1))


def test_forged_bytes_that_say_where_points_went_are_damage(tmp_path):
    pytest.importorskip("DracoPy")
    original = samples.particles()
    made = wb.compress(original, wb.Absolute(0.1), "draco", order="free")
    path, key = with_payload(made, 0, b"nothing like it", tmp_path / "some.zip")
    with pytest.raises(Damaged, match=f"chunk {key} is damaged: draco could not decode"):
        wb.open(path).decompress()
    with pytest.raises(Damaged, match=f"chunk {key} is damaged"):
        wb.open(path).permutation(original)


@pytest.mark.parametrize(("options", "said"), [
    ({"codecs": [3]}, "codecs must be names of codecs, such as 'sz3'; got 3"),
    ({"most_bytes": 0}, "most_bytes must be a whole number, at least 1; got 0"),
    ({"most_bytes": 1.5}, "most_bytes must be a whole number"),
    ({"isolate": "no"}, "isolate must be True or False; got 'no'"),
    ({"patience": 0}, "patience must be a number in"),
    ({"frame": 3}, "'frame' makes no sense for some.zip.*: it takes codecs, most_bytes, isolate"),
])
def test_options_that_make_no_sense_are_refused(path, options, said):
    with pytest.raises(WorkbenchError, match=said):
        wb.open(path, **options)


def test_both_ways_to_open_take_the_same():
    taken = set(inspect.signature(Archive.open).parameters) - {"path"}
    assert taken == {"codecs", "most_bytes", "isolate", "patience", "damaged", "storage_options"}
    assert taken == set(Trust.__dataclass_fields__) | {"damaged", "storage_options"}


def test_a_codec_of_another_package_is_not_imported_unasked(tmp_path, monkeypatch):
    """The package is not there at all, so any attempt to import it would say so."""
    point = EntryPoint("theirs", "package_of_others.codecs:Theirs", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: {"theirs": point})
    entries = parts(wb.compress(samples.field(), wb.Absolute(0.1), "prequantised"))
    described = resealed(entries, "values/zarr.json", lambda document: document["codecs"][0]["configuration"].update(
        codec={"id": "columns", "codec": {"id": "theirs"}}))
    saved = tmp_path / "some.zarr"
    for key, data in described.items():
        (saved / key).parent.mkdir(parents=True, exist_ok=True)
        (saved / key).write_bytes(data)
    with pytest.raises(WorkbenchError, match=r"'theirs' is of another package, package_of_others\.codecs, and a file that"):
        wb.open(saved)
    with pytest.raises(WorkbenchError, match="cannot be imported: No module named 'package_of_others'"):
        wb.open(saved, codecs=["theirs"])
    monkeypatch.setitem(sys.modules, "package_of_others.codecs", None)   # imported by the program, without success
    with pytest.raises(WorkbenchError, match="cannot be imported"):
        wb.open(saved)

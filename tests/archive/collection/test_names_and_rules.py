"""Names of members in the archive, and which bound each of them has."""

import re

import numpy as np
import pytest
import zarr

import workbench as wb
from workbench.archive.collection.names import places_of
from workbench.archive.collection.rules import options_for

ABSOLUTE, RELATIVE, EXACT = wb.Absolute(0.1), wb.Relative(1e-3), wb.Exact()
DATA = {"T": [1.0, 2.0], "P": [1.0], "P_mean": [2.0], "ocean": {"T": [1.0], "id": [1]}, "name": ["a"]}

NAMES = {
    "sea ice": "sea_ice", "c": "c", "zarr.json": "v_zarr.json", "lossbench": "v_lossbench", "__x": "x", "é": "v_",
    "-a": "a_2", ".": "v_", "x" * 100: "x" * 100, "a/b c": "a/b_c",
}


def test_names_that_cannot_be_keys_are_changed_in_the_archive_alone(tmp_path):
    assert {name: place.at for name, place in places_of(dict.fromkeys(NAMES, True)).items()} == NAMES | {".": "v__2"}
    archive = wb.compress({name: np.full(3, number) for number, name in enumerate(NAMES)}, EXACT, out=tmp_path / "x.zarr")
    assert [archive[name].decompress().values[0] for name in NAMES] == list(range(len(NAMES)))
    assert zarr.open_group(str(tmp_path / "x.zarr"), mode="r")["a/b_c"][:].tolist() == [9, 9, 9]


def test_a_mask_does_not_take_the_name_of_another_member(tmp_path):
    values = np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)
    data = {"T": values, "T_mask": [5.0], "T_2": [6.0], "t": [7.0]}
    archive = wb.compress(data, EXACT, out=tmp_path / "x.zip")
    assert archive.verify(data).passed
    assert archive["T"].decompress().mask.tolist() == [False, True, False]


@pytest.mark.parametrize(("rules", "wanted"), [
    ({"*": RELATIVE}, {"T": RELATIVE, "P": RELATIVE, "P_mean": RELATIVE, "ocean/T": RELATIVE}),
    ({"*": RELATIVE, "T": ABSOLUTE}, {"T": ABSOLUTE, "P": RELATIVE, "P_mean": RELATIVE, "ocean/T": RELATIVE}),
    ({"P*": EXACT, "*T": ABSOLUTE}, {"T": ABSOLUTE, "P": EXACT, "P_mean": EXACT, "ocean/T": ABSOLUTE}),
    ({"ocean": ABSOLUTE, "*": EXACT}, {"T": EXACT, "P": EXACT, "P_mean": EXACT, "ocean/T": ABSOLUTE}),
    (RELATIVE, {"T": RELATIVE, "P": RELATIVE, "P_mean": RELATIVE, "ocean/T": RELATIVE}),
])
def test_a_name_counts_before_a_pattern_and_an_earlier_pattern_before_a_later(rules, wanted):
    found = {name: options["bound"] for name, options in options_for(wb.Dataset(DATA), rules).items()}
    assert found == wanted | {"ocean/id": EXACT, "name": EXACT}


@pytest.mark.parametrize(("data", "rules", "message"), [
    (DATA, {"Tt": ABSOLUTE, "*": EXACT}, "got 'Tt': did you mean 'T'?"),
    (DATA, {"T": ABSOLUTE}, "'P', 'P_mean', 'ocean/T' have no bound: add a rule, such as 'P': wb.Absolute(...)"),
    (DATA, {"T": 3}, "the rule for 'T' must be a bound"),
    (DATA, {"T": {"bound": ABSOLUTE, "ordr": ""}}, "an argument in the rule for 'T'; got 'ordr': did you mean 'order'?"),
    (DATA, {}, "the bounds of a dataset must be"),
    (DATA, {"name": ABSOLUTE, "*": EXACT}, "'name': only numbers have a bound"),
    (DATA, {"T": wb.Absolute("1 K"), "*": EXACT}, "'T': 1 K needs data with a unit"),
    ({"T": [1.0], "T/a": [1.0]}, EXACT, "'T' is the name of a member and of a group"),
    ({"a//b": [1.0]}, EXACT, "the name of a member must be text"),
    ({3: [1.0]}, EXACT, "the name of a member must be text"),
    ({"x": [object()]}, EXACT, "'x': objects must be text or None"),
    ({"x": np.zeros(2, "f16")}, EXACT, "'x': an array must hold numbers of at most 64 bits"),
    ({"x": [1.0]}, {"x": {"bound": ABSOLUTE, "keep": wb.KeepClusters()}}, "'x': keep of a field takes wb.Safeguard"),
    ({}, EXACT, "a dataset must have members"),
])
def test_wrong_rules_and_members_end_in_a_sentence_that_names_them(data, rules, message):
    with pytest.raises(wb.WorkbenchError, match=re.escape(message)):
        wb.compress(data, rules)


def test_metadata_of_a_dataset_belong_to_its_members():
    with pytest.raises(wb.WorkbenchError, match="metadata= is for one array"):
        wb.compress({"x": [1.0]}, EXACT, metadata={"a": 1})

"""Names that a dataset or a collection does not have."""

import numpy as np
import pytest

import workbench as wb
from workbench.archive.collection.compressing import gathered
from workbench.archive.collection.dataset import Dataset


@pytest.fixture(scope="module")
def archive() -> wb.Collection:
    return wb.compress({"T": [1.0, 2.0], "ocean": {"S": [3.0]}}, wb.Absolute(0.1))


def test_mappings_answer_for_any_name(archive: wb.Collection) -> None:
    for mapping in (archive, archive.decompress()):
        assert "T" in mapping
        assert "ocean/S" in mapping
        assert "U" not in mapping
        assert mapping.get("U") is None


def test_an_unknown_name_is_a_sentence_with_the_nearest(archive: wb.Collection) -> None:
    for mapping in (archive, archive.decompress()):
        with pytest.raises(wb.WorkbenchError, match=r"got 'Ocean/S': did you mean 'ocean/S'"):
            mapping["Ocean/S"]


@pytest.mark.parametrize(("members", "group"), [
    ({"T": np.ma.MaskedArray([1.0, 2.0], [True, False])}, "T_mask"), ({"sea ice": [1.0, 2.0]}, "sea_ice"),
    ({"sea ice": [1.0, 2.0]}, "sea_ice/deep"), ({"gas": wb.Particles([[0.0, 0.5]])}, "gas/positions"),
])
def test_the_attributes_of_groups_are_kept_beside_arrays_like_their_names(members, group, tmp_path):
    groups = {group: {"attributes": {"title": "a group"}}}
    archive = wb.compress(Dataset(members, groups), wb.Absolute(0.1))
    for one in (archive, wb.open(archive.save(tmp_path / "x.zip")), gathered(archive, archive.groups)):
        assert one.groups[group] == groups[group]
        assert one.verify(Dataset(members, groups)).passed


def test_a_group_has_no_name_of_a_member():
    with pytest.raises(wb.WorkbenchError, match="'T' is the name of a member and of a group: rename"):
        Dataset({"T": [1.0]}, {"T": {"attributes": {"title": "a group"}}})

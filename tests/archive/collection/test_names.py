"""Names that a dataset or a collection does not have."""

import pytest

import workbench as wb


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

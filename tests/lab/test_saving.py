"""Archives are taken along: saved, downloaded, and never replaced without a question."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.lab.buttons import DownloadButton
from workbench.lab.saving import SaveArchive

FIELD = wb.synthetic.gaussian_field((32, 32), seed=1)


def archive(eb: float = 0.01) -> wb.Archive:
    return wb.compress(FIELD, wb.Absolute(eb), codec="prequantised")


@pytest.fixture
def saver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SaveArchive:
    monkeypatch.chdir(tmp_path)
    made = archive()
    return SaveArchive("field.zip", lambda path, overwrite=False: made.save(path, overwrite).resolve())


def is_asking(saver: SaveArchive) -> bool:
    return bool(saver.content["asks"])


def sent(made: DownloadButton, monkeypatch: pytest.MonkeyPatch, view: int = 1) -> list[Any]:
    answers: list[Any] = []
    monkeypatch.setattr(made, "tell", lambda content, buffers=(): answers.append((content, list(buffers))))
    made.heard({"view": view})
    return answers


def test_an_archive_is_saved_under_its_name(saver: SaveArchive, tmp_path: Path) -> None:
    saver.press()
    assert saver.content["message"] == f"saved as {tmp_path / 'field.zip'}"
    assert not is_asking(saver)
    assert wb.open(tmp_path / "field.zip").verify(FIELD).passed


def test_a_file_is_replaced_only_after_a_question(saver: SaveArchive, tmp_path: Path) -> None:
    older = archive(0.5).save(tmp_path / "field.zip").read_bytes()
    saver.press()
    assert saver.content["message"] == "field.zip exists: replace it?"
    assert is_asking(saver)
    saver.heard({"does": "keep"})
    assert saver.content["message"] == ""
    assert not is_asking(saver)
    assert (tmp_path / "field.zip").read_bytes() == older
    saver.press()
    saver.heard({"does": "replace"})
    assert saver.content["message"].startswith("saved as")
    assert not is_asking(saver)
    assert (tmp_path / "field.zip").read_bytes() != older


def test_what_is_no_archive_is_not_replaced_and_the_reason_is_told(saver: SaveArchive, tmp_path: Path) -> None:
    (tmp_path / "field.zip").write_text("my notes")
    saver.press()
    assert not is_asking(saver)
    assert "only an archive written by lossbench is overwritten" in saver.content["message"]
    assert "True" not in saver.content["message"]
    assert (tmp_path / "field.zip").read_text() == "my notes"


def test_a_message_stands_as_long_as_what_was_saved_is_shown(saver: SaveArchive) -> None:
    saver.shows("sz3")
    saver.press()
    saver.shows("sz3")
    assert saver.content["message"].startswith("saved as")
    saver.shows("zfp")
    assert saver.content["message"] == ""


def test_a_question_about_another_archive_is_withdrawn(saver: SaveArchive, tmp_path: Path) -> None:
    archive(0.5).save(tmp_path / "field.zip")
    saver.shows("sz3")
    saver.press()
    saver.shows("zfp")
    assert not is_asking(saver)


def test_a_download_is_the_archive_as_one_file(saver: SaveArchive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saver.heard({"name": "results/field"})
    ((content, (data,)),) = sent(saver.download, monkeypatch, view=7)
    assert content == {"view": 7, "name": "field.zip"}
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    (tmp_path / "copy.zip").write_bytes(data)
    assert wb.open(tmp_path / "copy.zip").verify(FIELD).passed


def test_a_download_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str | Path, overwrite: bool = False) -> Path:
        raise WorkbenchError("the codec failed: no memory")

    saver = SaveArchive("field.zip", refuse)
    ((content, data),) = sent(saver.download, monkeypatch)
    assert content == {"view": 1, "failed": True}
    assert data == []
    assert "no memory" in saver.content["message"]


def test_nothing_waits_for_an_archive_that_is_being_computed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waiting: list[Any] = []
    saver = SaveArchive("field.zip", lambda path, overwrite=False: archive().save(path, overwrite), waiting.append)
    monkeypatch.chdir(tmp_path)
    answers = sent(saver.download, monkeypatch)
    saver.press()
    assert saver.content["message"] == "waiting for the archive …"
    assert not answers
    for then in waiting:
        then("")
    assert saver.content["message"].startswith("saved as")
    assert answers[0][0]["name"] == "field.zip"
    saver.press()
    waiting[-1]("cancelled")
    assert "cancelled" in saver.content["message"]

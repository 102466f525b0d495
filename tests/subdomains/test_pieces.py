"""Files of pieces: each column of each piece comes back, and nothing that has changed does."""

from io import FileIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.run.pieces import PieceFile, pieces_of, write_pieces

WIDTHS = (4, 24, 3)


def columns(rows, random):
    return [random.integers(256, size=(rows, width), dtype=np.uint8) for width in WIDTHS]


@given(st.lists(st.integers(0, 40), max_size=6), st.integers(0, 2**32 - 1))
def test_any_columns_of_any_piece(tmp_path_factory, rows, seed):
    path, random = tmp_path_factory.mktemp("pieces") / "file", np.random.default_rng(seed)
    pieces = [columns(count, random) for count in rows]
    write_pieces(path, len(pieces), iter(pieces))
    for number, piece in enumerate(pieces):
        for first, last in ((0, 1), (0, 3), (1, 2), (2, 3)):
            with pieces_of(path) as file:
                read = file.read(number, WIDTHS, range(first, last))
            assert [array.tobytes() for array in read] == [column.tobytes() for column in piece[first:last]]


class FewAtOnce(FileIO):
    """A file as systems read it, but in fewer bytes at once."""

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:5])


def test_a_piece_is_read_however_few_bytes_come_at_once(tmp_path):
    piece = columns(40, np.random.default_rng(0))
    write_pieces(tmp_path / "file", 1, [piece])
    with FewAtOnce(tmp_path / "file") as file:
        read = PieceFile(file).read(0, WIDTHS, range(3))
    assert [array.tobytes() for array in read] == [column.tobytes() for column in piece]


def test_a_wrong_number_of_pieces_leaves_no_file(tmp_path):
    for count in (1, 3):
        with pytest.raises(ValueError, match=rf"file must get {count} pieces"):
            write_pieces(tmp_path / "file", count, [columns(5, np.random.default_rng(0))] * 2)
    assert not list(tmp_path.iterdir())


def test_every_changed_bit_and_every_length_is_noticed(tmp_path):
    path, random = tmp_path / "file", np.random.default_rng(0)
    write_pieces(path, 2, [columns(2, random), columns(3, random)])
    whole = path.read_bytes()

    def read():
        with pieces_of(path) as file:
            return [file.read(number, WIDTHS, range(3)) for number in range(2)]

    read()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(WorkbenchError, match=r"file cannot be read .*Try again"):
            read()
        path.write_bytes(whole[:place])
        with pytest.raises(WorkbenchError, match=r"file cannot be read"):
            read()


def test_pieces_do_not_take_each_others_place(tmp_path):
    """Equal data at another place have another checksum."""
    path, piece = tmp_path / "file", columns(4, np.random.default_rng(0))
    write_pieces(path, 2, [piece, piece])
    whole = bytearray(path.read_bytes())
    size = (len(whole) - 24) // 2
    whole[24 : 24 + size] = whole[24 + size :]
    path.write_bytes(whole)
    with pytest.raises(WorkbenchError, match="its bytes have changed"), pieces_of(path) as file:
        file.read(0, WIDTHS, range(3))

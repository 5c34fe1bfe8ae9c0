"""A corpus of malformed inputs: each is refused in one line that says what is wrong, and loads nothing."""

import io
import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from adance.cli import main
from adance.data import load_data, load_for_model
from adance.errors import InputError

BYTES = np.random.default_rng(0).integers(0, 256, (20, 6, 5), dtype=np.uint8)
ROWS = np.arange(40.0).reshape(20, 2) ** 2

TABLES = {
    "nothing": ("", "holds no rows"),
    "a byte-order mark alone": ("\ufeff", "holds no rows"),
    "blank lines": ("\n\n  \n", "holds no rows"),
    "a header alone": ("a,b\n", "holds no rows"),
    "one row": ("a,b\n1,2\n", "1 training row(s), but at least 2"),
    "an empty cell": ("a,b\n1,2\n3,\n", "line 3, column 'b': the cell is empty"),
    "an empty row": ("a,b\n1,2\n,\n3,4\n", "line 3, column 'a': the cell is empty"),
    "a gap": ("a\n1\n\n3\n", "line 3 is empty, which could be a missing value"),
    "nan": ("a,b\n1,nan\n2,3\n", "'nan' is not finite"),
    "infinity": ("1,2\n-Infinity,3\n", "line 2, column 1: '-Infinity' is not finite"),
    "overflow": ("1,2\n1e999,3\n", "'1e999' is not finite"),
    "too large to square": ("1,2\n1e200,3\n", "row 1 (from 0) holds 1e+200"),
    "NA of R": ("a,b\nNA,1\n2,3\n", "'NA' is not a number"),
    "NA in the first line": ("NA,NA\n1,2\n3,4\n", "line 1, column 1: 'NA' is not a number"),
    "a question mark": ("a,b\n1,?\n2,3\n4,5\n", "'?' is not a number"),
    "underscores": ("a,b\n1_000,2\n3,4\n", "'1_000' is not a number"),
    "underscores in the first line": ("1_000,2_000\n3,4\n", "line 1, column 1: '1_000' is not a number"),
    "hexadecimal": ("0x10,0x20\n3,4\n", "'0x10' is not a number"),
    "other digits": ("a,b\n\u0663,1\n2,3\n", "is not a number"),
    "a currency": ("a,b\n$5,1\n2,3\n", "'$5' is not a number"),
    "a percentage at the end": ("a,b\n1,5%\n2,3%\n", "column 'b': '5%' is not a number"),
    "thousands": ('a,b\n"1,234",1\n2,3\n', "'1,234' is not a number"),
    "thousands with decimal commas": ("a;b\n1.234,5;1\n2;3\n", "'1.234,5' is not a number"),
    "commas and points": ("a;b\n1,5;1\n2;3.5\n", "has a decimal comma, but '3.5' in line 3 has a decimal point"),
    "text among numbers": ("a,b,c\n1,two,3\n4,5,6\n", "line 2, column 'b': 'two' is not a number"),
    "text in one cell of the last column": ("a,b\n1,2\n3,x\n", "line 3, column 'b': 'x' is not a number"),
    "a header with a number": ("a,2\n1,2\n3,4\n", "line 1, column 1: 'a' is not a number"),
    "a second header": ("a,b\na,b\n1,2\n", "line 2, column 'a': 'a' is not a number"),
    "a longer row": ("1,2\n3,4,5\n", "line 2 has 3 cells, but the first has 2"),
    "a shorter row": ("1,2\n3\n", "line 2 has 1 cells, but the first has 2"),
    "spaces between cells": ("1 2\n3 4\n", "'1 2' is not a number"),
    "semicolons after a comma": ("a,b\n1;2\n3;4\n", "line 2 has 1 cells"),
    "an open quote": ('1,"2\n3,4\n', "unexpected end of data"),
    "text after a quote": ('1,"2"3\n4,5\n', "cannot be read as a UTF-8 table"),
    "a long cell": ("a,b\n1," + "7" * 140_000 + "\n", "field larger than field limit"),
    "Latin-1": ("größe,b\n1,2\n".encode("latin-1"), "cannot be read as a UTF-8 table"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "cannot be read as a UTF-8 table"),
    "a NUL": ("a,b\n1,2\x00\n3,4\n", "t.csv: line "),
    "labels alone": ("class\ng\nh\n", "holds only labels"),
    "names alone": ("x1\ng\nh\n", "holds only labels"),
    "two labels": ("class,target,b\n1,2,3\n4,5,6\n", "'class', 'target' could each be the label"),
    "an empty label": ("a,class\n1,\n2,g\n", "the label is empty"),
    "a fraction as a label": ("a,class\n1,0.5\n2,1\n", "label '0.5' is not a whole number"),
    "nan as a label": ("a,class\n1,nan\n2,1\n", "label 'nan' is not a whole number"),
    "a label above 64 bits": ("a,class\n1,99999999999999999999\n2,1\n", "is not a whole number"),
    "one label in two ways": ("a,class\n1,01\n2,1\n", "labels '01' and '1' are the same number"),
    "a label with a point": ("a,class\n1,1.0\n2,1\n", "labels '1' and '1.0' are the same number"),
}


@pytest.mark.parametrize("name", TABLES)
def test_table(name, tmp_path):
    text, message = TABLES[name]
    (tmp_path / "t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(tmp_path / "t.csv", message)


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def header(text, version=b"\x01\x00"):
    text = text.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\x01\x00" else "<I", len(text)) + text


def promise(shape, dtype="|u1", order="False", data=b"\0" * 100):
    return header(f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}") + data


ARRAYS = {
    "nothing": (b"", "cannot be read as a NumPy array"),
    "text": (b"1,2\n3,4\n", "it is not a NumPy file"),
    "a pickle": (b"\x80\x04K\x01.", "it is not a NumPy file"),
    "a magic string alone": (b"\x93NUMPY", "cannot be read as a NumPy array"),
    "an unknown version": (b"\x93NUMPY\x09\x00" + npy(ROWS)[8:], "we only support format version"),
    "a cut header": (npy(ROWS)[:40], "EOF: reading array header"),
    "a header of code": (header("__import__('os')"), "its header does not describe an array"),
    "a header without keys": (header("{}"), "Header does not contain the correct keys"),
    "a header that is a number": (header("7"), "Header is not a dictionary"),
    "a header of half a million characters": (header(" " * 500_000 + "{}", b"\x02\x00"), "Header info length"),
    "a shape that is no tuple": (promise("7"), "shape is not valid"),
    "a shape of floats": (promise("(2.0, 3)"), "shape is not valid"),
    "an order that is a number": (promise("(2, 3)", order="7"), "fortran_order is not a valid bool"),
    "an unknown type": (promise("(2, 3)", "<q9"), "descr is not a valid dtype descriptor"),
    "a negative shape": (promise("(-2, 3)"), "cannot be read as a NumPy array"),
    "a cut array": (npy(BYTES)[:-1], "600 bytes, but only 599 follow"),
    "an array of a terabyte": (promise("(1000000, 1000000)"), "says shape (1000000, 1000000) of uint8"),
    "a shape beyond 64 bits": (promise("(2**40, 2**40)".replace("2**40", str(2**40))), "but only 100 follow"),
    "a shape that wraps to nothing": (promise(f"({2**32}, {2**32})"), "but only 100 follow"),
    "objects": (npy(np.array([[1, "a"]], dtype=object), allow_pickle=True), "pickled objects are not loaded"),
    "fields": (npy(np.zeros(3, [("a", float), ("b", int)])), "must be numeric"),
    "text cells": (npy(np.array([["a", "b"]])), "must be numeric"),
    "dates": (npy(np.array(["2020-01-01"], "M8[D]")[:, None]), "must be numeric"),
    "complex numbers": (npy(np.ones((3, 2), complex)), "dtype is complex128"),
    "a number": (npy(np.array(3.0)), "shape () has 0 axes"),
    "a list": (npy(np.ones(5)), "shape (5,) has 1 axes"),
    "five axes": (npy(np.ones((2, 1, 2, 2, 2))), "has 5 axes"),
    "no rows": (npy(np.ones((0, 4))), "(0, 4) is empty"),
    "no columns": (npy(np.ones((4, 0))), "(4, 0) is empty"),
    "one row": (npy(np.ones((1, 4))), "1 training row(s)"),
    "nan": (npy(np.array([[1.0, 2], [np.nan, 1]])), "row 1 (from 0) holds nan"),
    "infinity": (npy(np.array([[1.0, 2], [1, -np.inf]])), "holds -inf"),
    "too large to square": (npy(np.array([[1.0, 1e300], [1, 1]])), "row 0 (from 0) holds 1e+300"),
    "too large an image": (npy(np.full((3, 4, 4), 1e30)), "row 0 (from 0) holds 1e+30"),
    "images of nan": (npy(np.full((3, 4, 4), np.nan)), "holds nan"),
    "floats beyond 1": (npy(np.full((3, 4, 4), 7.5)), "float images range over [7.5, 7.5]"),
    "negative integers": (npy(np.full((3, 4, 4), -2)), "integer images range over -2..-2"),
    "integers above 255": (npy(np.full((3, 4, 4), 256)), "integer images range over 256..256"),
    "zeros and ones": (npy(BYTES // 255), "integer images hold only 0 and 1"),
    "an ambiguous layout": (npy(np.ones((4, 3, 8, 3))), "is ambiguous"),
    "no channels": (npy(np.ones((4, 8, 8, 2))), "has 1 or 3 channels in neither layout"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_npy(name, tmp_path):
    content, message = ARRAYS[name]
    (tmp_path / "a.npy").write_bytes(content)
    refused(tmp_path / "a.npy", message)


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_npy", ".npy"), content)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def damaged(content, at):
    return content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]


WHOLE = npz(x=BYTES)
ARCHIVES = {
    "nothing": (b"", "cannot be read as a NumPy array"),
    "junk": (b"PK\x03\x04junk", "it is not a NumPy file"),
    "no members": (zipped(), "holds nothing, but needs x_train"),
    "a cut archive": (WHOLE[:-30], "it is not a NumPy file"),
    "damaged data": (damaged(WHOLE, 300), "cannot be read as a NumPy array"),
    "a damaged directory": (damaged(WHOLE, WHOLE.index(b"PK\x01\x02") + 1), "cannot be read as a NumPy array"),
    "a member that is text": (zipped(x_npy=b"hello"), "['x']: cannot be read as a NumPy array"),
    "a text file": (zipped(notes=b"hello"), "['notes']: cannot be read as a NumPy array"),
    "a member that promises more": (zipped(x_npy=promise("(9000000, 9000000)")), "but only 100 follow"),
    "a member that is objects": (npz(x=np.array([None])), "['x']"),
    "unknown names": (npz(images=BYTES, more=BYTES), "holds 'images', 'more', but needs x_train"),
    "a test split alone": (npz(x_test=BYTES, y_test=np.arange(20)), "but needs x_train"),
    "too few labels": (npz(x=BYTES, y=np.arange(3)), "labels have shape (3,)"),
    "labels as a table": (npz(x=BYTES, y=np.ones((20, 2))), "labels have shape (20, 2)"),
    "fractions as labels": (npz(x=BYTES, y=np.full(20, 0.5)), "label 0.5 of row 0 is not a whole number"),
    "nan as labels": (npz(x=BYTES, y=np.full(20, np.nan)), "label nan of row 0"),
    "bytes as labels": (npz(x=BYTES, y=np.full(20, b"a")), "label b'a' of row 0"),
    "labels of 64 bits": (npz(x=BYTES, y=np.full(20, 2**63, np.uint64)), "label 9223372036854775808 of row 0"),
    "empty labels": (npz(x=BYTES, y=np.array(["a"] * 19 + [""])), "the label of row 19 (from 0) is empty"),
    "one label in two ways": (npz(x=BYTES, y=np.array(["7", "07"] * 10)), "'07' and '7' are the same number"),
    "names and numbers": (
        npz(x=BYTES, x_test=BYTES, y=np.array(["a"] * 20), y_test=np.arange(20)),
        "labels are names, but those of the other split are numbers",
    ),
    "shapes that differ": (npz(x=BYTES, x_test=BYTES[:, 1:]), "(1, 6, 5) and type torch.uint8, test events (1, 5, 5)"),
    "types that differ": (npz(x=BYTES, x_test=BYTES / 255), "must be alike"),
    "kinds that differ": (npz(x=BYTES, x_test=ROWS), "must be alike"),
    "an empty test split": (npz(x=BYTES, x_test=BYTES[:0]), "['x_test']: shape (0, 6, 5) is empty"),
    "a test row that is far away": (
        npz(x=np.array([[0.0], [1e-200]]), x_test=np.array([[0.0], [1.0]])),
        "held-out or scored row 1 is not finite",
    ),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_npz(name, tmp_path):
    content, message = ARCHIVES[name]
    (tmp_path / "a.npz").write_bytes(content)
    refused(tmp_path / "a.npz", message)


def test_an_archive_larger_than_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((1000, 1000)))
    assert (tmp_path / "bomb.npz").stat().st_size < 20_000
    monkeypatch.setattr("adance.data.files.memory", lambda: 2**20)
    refused(tmp_path / "bomb.npz", "unpacks to 8,000,128 bytes, more than this machine's memory of 1,048,576")


def encoded(suffix="png", size=(6, 5), mode="RGB", **options):
    file = io.BytesIO()
    Image.new(mode, size, 3).save(file, {"jpg": "jpeg", "tif": "tiff", "pgm": "ppm"}.get(suffix, suffix), **options)
    return file.getvalue()


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(width, height, *, depth=8, color=0, data=b""):
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    return start + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


UNREADABLE = "cannot be read as a picture"
PICTURES = {
    "nothing.png": (b"", UNREADABLE),
    "text.png": (b"hello", UNREADABLE),
    "signature.png": (b"\x89PNG\r\n\x1a\n", UNREADABLE),
    "header.png": (encoded()[:30], UNREADABLE),
    "cut.png": (encoded()[:-30], UNREADABLE),
    "checksum.png": (damaged(encoded(), encoded().index(b"IDAT") + 6), UNREADABLE),
    "bomb.png": (png(50_000, 50_000), "exceeds limit of"),
    "warning.png": (png(10_000, 10_000), "exceeds limit of"),
    "short.png": (png(6, 5, data=b"\0" * 3), UNREADABLE),
    "flat.png": (png(0, 5), UNREADABLE),
    "color.png": (png(6, 5, color=9), UNREADABLE),
    "deep.png": (encoded(mode="I;16"), "picture mode is I;16"),
    "frames.png": (
        encoded(mode="L", save_all=True, append_images=[Image.new("L", (6, 5), 9)]),
        "has several frames, but must be one picture",
    ),
    "size.png": (encoded(size=(7, 5)), "is 6 x 5 pixels (width x height), but the first"),
    "cut.jpg": (encoded("jpg")[:200], UNREADABLE),
    "empty.jpg": (b"\xff\xd8\xff\xd9", UNREADABLE),
    "cut.gif": (encoded("gif", mode="L")[:20], UNREADABLE),
    "frames.gif": (
        encoded("gif", mode="L", save_all=True, append_images=[Image.new("L", (6, 5), 9)]),
        "has several frames",
    ),
    "float.tif": (encoded("tif", mode="F"), "picture mode is F"),
    "integers.tif": (encoded("tif", mode="I"), "picture mode is I"),
    "lab.tif": (encoded("tif", mode="LAB"), "picture mode is LAB"),
    "cut.tif": (encoded("tif")[:20], UNREADABLE),
    "pages.tif": (
        encoded("tif", mode="L", save_all=True, append_images=[Image.new("L", (6, 5), 9)]),
        "has several frames",
    ),
    "cut.webp": (encoded("webp")[:15], UNREADABLE),
    "cut.bmp": (encoded("bmp")[:40], UNREADABLE),
    "bomb.ppm": (b"P6 60000 60000 255\n", "exceeds limit of"),
    "words.ppm": (b"P6 six five 255\n", UNREADABLE),
    "deep.ppm": (b"P6 6 5 70000\n", UNREADABLE),
    "short.pgm": (b"P5 6 5 255\nabc", UNREADABLE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture(name, tmp_path):
    content, message = PICTURES[name]
    for i in range(2):
        (tmp_path / f"z{i}.png").write_bytes(encoded())
    (tmp_path / name).write_bytes(content)
    refused(tmp_path, message)


def test_sources_and_options(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    (tmp_path / "folder").mkdir()
    np.savez(tmp_path / "split.npz", x=ROWS, x_test=ROWS)
    for source, options, message in [
        (tmp_path / "none.npy", {}, "no such file"),
        (tmp_path / "none.csv", {}, "no such file"),
        (tmp_path / "a.parquet", {}, "neither a known name nor a readable path"),
        (tmp_path / "folder", {}, "has no pictures"),
        (tmp_path / "folder" / "\0.csv", {}, "no such file"),
        (tmp_path / "a.npy", {"held_out": 1.5}, "held_out must be between 0 and 1, got 1.5"),
        (tmp_path / "a.npy", {"held_out": float("nan")}, "held_out must be between 0 and 1, got nan"),
        (tmp_path / "split.npz", {"held_out": 1.5}, "held_out must be between 0 and 1, got 1.5"),
        ("digits", {"held_out": 0}, "held_out must be between 0 and 1, got 0"),
        (tmp_path / "a.npy", {"seed": -1}, "the data's seed must be"),
        (tmp_path / "a.npy", {"image_size": 8}, "image_size applies to a folder of images or a hub set"),
        (tmp_path / "folder", {"image_size": -8}, "image_size must be at least 1 and at most 8192, got -8"),
        (tmp_path / "folder", {"image_size": 10**6}, "at most 8192, got 1000000"),
        ("digit", {}, "neither a known name nor a readable path"),
    ]:
        with pytest.raises(InputError) as caught:
            load_data(source, **options)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path):
    os = pytest.importorskip("os")
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs named pipes")
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(InputError, match="not a regular file"):
        load_data(tmp_path / "pipe.npy")


def test_a_share_that_a_test_split_makes_useless_is_said(tmp_path):
    np.savez(tmp_path / "split.npz", x=ROWS, x_test=ROWS[:7])
    with pytest.warns(UserWarning, match=r"held_out=0\.3 is not used, since the data have a test split"):
        assert len(load_data(tmp_path / "split.npz", held_out=0.3).test) == 7


def test_bytes_after_an_array_are_said(tmp_path):
    (tmp_path / "a.npy").write_bytes(npy(ROWS) + npy(ROWS))
    with pytest.warns(UserWarning, match=r"a\.npy: not used: 448 bytes after the array"):
        load_data(tmp_path / "a.npy")


SAMPLE = [
    *(("t.csv", *TABLES[name]) for name in ("an empty cell", "underscores", "an open quote", "one label in two ways")),
    *(("a.npy", *ARRAYS[name]) for name in ("an array of a terabyte", "objects", "a header of code", "nan")),
    *(("a.npz", *ARCHIVES[name]) for name in ("a member that promises more", "damaged data", "unknown names")),
    *((f"folder/{name}", *PICTURES[name]) for name in ("bomb.png", "cut.jpg", "frames.gif", "size.png")),
]


@pytest.mark.parametrize(("name", "content", "message"), SAMPLE, ids=range(len(SAMPLE)))
def test_the_command_line_answers_in_one_line(name, content, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "z.png").write_bytes(encoded())
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(tmp_path.rglob("*"))
    assert main(["train", "--data", name.partition("/")[0], "--out", "run", "--quiet"]) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 1
    assert answer.err.startswith("adance train: error: ")
    assert message in answer.err
    assert sorted(tmp_path.rglob("*")) == before


def refused(path, message):
    with pytest.raises(InputError) as caught:
        load_data(path)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(str(path))
    assert message in said
    description = load_data("digits").describe()
    with pytest.raises(InputError):  # also of another shape
        load_for_model(path, description)


def test_the_corpus_is_large():
    assert len(TABLES) + len(ARRAYS) + len(ARCHIVES) + len(PICTURES) >= 120

import os
import sys
from pathlib import Path

import pytest

from adance.atomic import atomic_dir, atomic_write


class Broken(Exception):
    pass


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "sub" / "file.txt"
    with atomic_write(path) as aside:
        aside.write_text("old")
        assert not path.exists()
    with pytest.raises(Broken), atomic_write(path) as aside:  # noqa: PT012
        aside.write_text("new, half")
        raise Broken
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]
    with atomic_write(path) as aside:
        aside.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_is_whole_or_not_there(tmp_path):
    path = tmp_path / "sub" / "folder"
    with pytest.raises(Broken), atomic_dir(path) as aside:  # noqa: PT012
        (aside / "half").write_text("x")
        assert not path.exists()
        raise Broken
    assert list(path.parent.iterdir()) == []
    with atomic_dir(path) as aside:
        (aside / "all").write_text("x")
    assert [p.name for p in path.iterdir()] == ["all"]
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_writer_left_is_written_over(tmp_path):
    (tmp_path / ".folder.part").mkdir()
    (tmp_path / ".folder.part" / "stale").write_text("x")
    with atomic_dir(tmp_path / "folder") as aside:
        (aside / "fresh").write_text("x")
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["fresh"]


def test_a_folder_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").write_text("x")
    with pytest.raises(OSError, match="not empty"), atomic_dir(tmp_path / "folder") as aside:
        (aside / "new").write_text("x")
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["old"]


def test_files_are_flushed_as_windows_allows_it(tmp_path, monkeypatch):
    """There a folder cannot be opened, and only a file that is open for writing can be flushed."""
    opened, flushed, real_open = {}, [], os.open

    def open_there(path, flags):
        if Path(path).is_dir():
            raise PermissionError(13, "Permission denied", str(path))
        handle = real_open(path, flags)
        opened[handle] = flags & os.O_RDWR
        return handle

    def flush_there(handle):
        if not opened[handle]:
            raise OSError(9, "Bad file descriptor")
        flushed.append(handle)

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "open", open_there)
    monkeypatch.setattr(os, "fsync", flush_there)
    with atomic_write(tmp_path / "file") as part:
        part.write_text("x", encoding="utf-8")
    with atomic_dir(tmp_path / "folder") as part:
        (part / "inside").write_text("y", encoding="utf-8")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "x"
    assert (tmp_path / "folder" / "inside").read_text(encoding="utf-8") == "y"
    assert len(flushed) == 2

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

"""A file is written whole or not at all."""

import os
import stat
import subprocess
import sys

import pytest

from regimix.atomic import open_atomically, write_bytes


def test_bytes_replace_what_was_there(tmp_path):
    path = tmp_path / "a.bin"
    write_bytes(path, b"old and longer")
    write_bytes(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_text_keeps_its_encoding_and_newlines(tmp_path):
    path = tmp_path / "a.txt"
    with open_atomically(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("é\n")
    assert path.read_bytes() == b"\xc3\xa9\n"


def write_half(path, error):
    with open_atomically(path) as file:
        file.write(b"half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.bin"
    write_bytes(path, b"old")
    with pytest.raises(error):
        write_half(path, error)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_nothing_is_seen_before_the_end(tmp_path):
    path = tmp_path / "a.bin"
    with open_atomically(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"


def test_a_missing_folder_is_the_users_to_make(tmp_path):
    path = tmp_path / "missing" / "a.bin"
    with pytest.raises(FileNotFoundError) as caught:
        write_bytes(path, b"new")
    assert caught.value.filename == str(path)


@pytest.mark.skipif(os.name != "posix", reason="devices as POSIX knows them")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_bytes(path, b"new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert path.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_bytes(tmp_path, b"new")


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX knows them")
def test_permissions_and_links_survive(tmp_path):
    path, link = tmp_path / "a.bin", tmp_path / "link"
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    write_bytes(path, b"old")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    link.symlink_to(path)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


KILLED = """
import os, signal, sys
from regimix.atomic import open_atomically
with open_atomically(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path):
    path = tmp_path / "[a].bin"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    (left,) = tmp_path.glob(".*.part")
    with open_atomically(path) as file:
        file.write(b"whole")
        # This one is written at the moment, as that one may be: it was made just now.
        assert len([*tmp_path.glob(".*.part")]) == 2
    for part in (left, tmp_path / ".other.bin.0123456789ab.part"):
        part.write_bytes(b"")
        os.utime(part, (0, 0))
    with open_atomically(path) as busy:
        (own,) = {*tmp_path.glob(".[[]a*.part")} - {left}
        os.utime(own, (0, 0))
        write_bytes(path, b"meanwhile")
        assert own.exists()  # however old, somebody writes it
        busy.write(b"last")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other.bin.0123456789ab.part", "[a].bin"]
    assert path.read_bytes() == b"last"

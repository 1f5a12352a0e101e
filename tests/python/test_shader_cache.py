# SPDX-License-Identifier: BSD-3-Clause
"""`openmps cache`, on folders made here. The cache itself is tested in C (tests/unit/test_cache.c)."""
import json
import os
import pathlib
import subprocess
import sys

KEY = "0123456789abcdef" * 4


def openmps(*words, **environment):
    """The command line's output; the device must not have been opened."""
    code = f"""
import sys
sys.argv = ["openmps", *{list(words)!r}]
from openmps.__main__ import main
code = main()
from openmps import _bridge
assert not _bridge.device_is_open()
sys.exit(code)
"""
    full = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
    return subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, check=True, timeout=120).stdout


def fill(folder):
    folder.mkdir(parents=True, mode=0o700)
    (folder / f"{KEY}.so").write_bytes(b"x" * 100)
    (folder / f"{KEY}.list").write_bytes(b"y" * 20)
    (folder / f"{KEY}.hpp").write_bytes(b"p" * 4)
    (folder / f"{KEY}.pch").write_bytes(b"q" * 3)
    (folder / f"{KEY}.so.tmp-1-2-3").write_bytes(b"z" * 3)
    others = ["notes.txt", f"{KEY}.txt", f"{KEY[:-1]}.so", f"{KEY}.so.old", KEY]
    for name in others:
        (folder / name).write_bytes(b"mine")
    (folder / f"{KEY.replace('0', '1')}.so").mkdir()
    return others


def test_shows_and_clears(tmp_path):
    folder = tmp_path / "cache"
    others = fill(folder)
    text = openmps("cache", OPENMPS_CACHE_PATH=str(folder), OPENMPS_CACHE_SIZE="5000")
    assert text == f"path      {folder}\nentries   5\nbytes     130 of 5000\n"
    assert json.loads(openmps("cache", "--json", OPENMPS_CACHE_PATH=str(folder))) == {
        "path": str(folder), "enabled": True, "entries": 5, "bytes": 130, "limit": 1 << 30}
    assert openmps("cache", "clear", OPENMPS_CACHE_PATH=str(folder)) == f"removed 5 files, 130 bytes, from {folder}\n"
    assert sorted(p.name for p in folder.iterdir()) == sorted([*others, f"{KEY.replace('0', '1')}.so"])
    assert openmps("cache", "clear", OPENMPS_CACHE_PATH=str(folder)) == f"removed 0 files, 0 bytes, from {folder}\n"


def test_default_places(tmp_path):
    home = {"OPENMPS_CACHE_PATH": None, "HOME": str(tmp_path)}
    fill(tmp_path / ".cache" / "openmps")
    assert json.loads(openmps("cache", "--json", XDG_CACHE_HOME=None, **home))["entries"] == 5
    assert json.loads(openmps("cache", "--json", XDG_CACHE_HOME=str(tmp_path / "other"), **home)) == {
        "path": str(tmp_path / "other" / "openmps"), "enabled": True, "entries": 0, "bytes": 0, "limit": 1 << 30}
    assert "(not used: OPENMPS_CACHE=0)" in openmps("cache", OPENMPS_CACHE="0", **home)
    assert not (tmp_path / "other").exists()


def test_tests_leave_the_home_alone():
    assert not os.environ["OPENMPS_CACHE_PATH"].startswith(str(pathlib.Path.home()) + "/")

# SPDX-License-Identifier: BSD-3-Clause
"""Who may include whom: base <- driver <- runtime <- shader <- graph <- ops <- bridge. Exits with 1 and a line per offence.

A driver includes base and driver only. bridge includes the public headers (and what is generated from the table). kernels/*.h include
stdint, Metal's own headers and each other: they are shared by C and Metal. No platform #if outside src/base/os.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
PLATFORM = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif).*\b(__linux__|__APPLE__|_WIN32|__x86_64__|__aarch64__|__unix__)\b", re.M)
ROOMS = ["base", "driver", "runtime", "shader", "graph", "ops"]
# Headers of a C file in a room: which other rooms of src/ it may name.
ALLOWED = {room: set(ROOMS[: i + 1]) for i, room in enumerate(ROOMS)}


def room_of(path):
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


def sources():
    for folder in ("src", "bridge", "kernels", "include"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".cpp", ".metal", ".inc") and "include/metal" not in path.as_posix():
                yield path


def offences(path):
    text = path.read_text()
    room, name = room_of(path), path.relative_to(ROOT).as_posix()
    for included in INCLUDE.findall(text):
        head = included.split("/")[0]
        if room in ALLOWED and head in ROOMS and "/" in included and head not in ALLOWED[room]:
            yield f"{name} includes {included}: {room} may not know {head}"
        if room == "driver" and name.count("/") > 2:
            own = name.split("/")[2]
            if included.startswith("driver/") and included.count("/") > 1 and included.split("/")[1] != own:
                yield f"{name} includes {included}: a driver may not know another"
        if room == "bridge" and head in ROOMS:
            yield f"{name} includes {included}: the bridge includes include/openmps only"
        if room == "include" and head != "openmps" and "/" in included:
            yield f"{name} includes {included}: public headers include public headers"
        if room == "include" and name.startswith("include/openmps") and head in ("torch", "ATen", "c10"):
            yield f"{name} includes {included}: nothing below the bridge knows torch"
    if room in ALLOWED and "src/base/os" not in name:
        for match in PLATFORM.findall(text):
            yield f"{name} asks for {match}: platforms are known in src/base/os only"


def main():
    found = [line for path in sources() for line in offences(path)]
    for line in found:
        print(line)
    print(f"check_includes: {len(found)} offences" if found else "check_includes: in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

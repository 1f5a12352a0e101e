# SPDX-License-Identifier: BSD-3-Clause
"""The arguments of kernels, read from preprocessed Metal source: what an author wants listed, not what compiling needs. A kernel that is
not understood (a specialisation by decltype of an overloaded template) is left out."""
import re

MARKER = re.compile(r"^#.*\n?", re.M)
KERNEL = re.compile(r"\[\[\s*kernel\s*\]\]|\bkernel\b")
HOST_NAME = re.compile(r"\bhost_name\s*\(\s*\"([^\"]*)\"\s*\)")
FUNCTION = re.compile(r"\s*(?:\[\[[^\]]*\]\]\s*)*void\s+([A-Za-z_]\w*)\s*(?:<[^;(){}]*>)?\s*\(")
DECLTYPE = re.compile(r"\s*(?:\[\[[^\]]*\]\]\s*)*decltype\s*\(\s*([A-Za-z_]\w*)\s*<")
ATTRIBUTE = re.compile(r"\[\[\s*(\w+)\s*(?:\(\s*(\w*)[^\]]*)?\]\]")


def without_library(text):
    """The user's part of what a stage wrote: the standard library is included in front of it."""
    first = text.partition("\n")[0]
    begin = text.find(f"\n{first} 2\n") if first.startswith("# 1 ") else -1
    return text if begin < 0 else text[begin + len(first) + 4:]


def closing(text, begin):
    """The place of the bracket that closes the one at `begin`; -1 without one."""
    depth = 0
    for i in range(begin, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return i
    return -1


def split(text):
    """At commas outside of brackets of all kinds."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def parameters(text):
    """[(kind, index, name, type)] of those that a caller binds; kind is buffer or threadgroup. Indices as the compiler gives them."""
    found, taken = [], {"buffer": set(), "threadgroup": set()}
    for part in split(text):
        attributes = {m[1]: m[2] for m in ATTRIBUTE.finditer(part)}
        plain = " ".join(ATTRIBUTE.sub(" ", part).split())
        kind = next((k for k in taken if k in attributes), None)
        if kind is None and not attributes:
            kind = "threadgroup" if re.search(r"\bthreadgroup\b", plain) else "buffer"
        if kind is None:
            continue  # a position or a size
        index = attributes.get(kind)
        name = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)?$", plain)
        index = int(index) if index and index.isdigit() else None if not index else -1
        if index is not None:
            taken[kind].add(index)
        found.append((kind, index, name[1] if name else "", (plain[: name.start()] if name else plain).strip()))
    free = {kind: iter(sorted(set(range(1024)) - used)) for kind, used in taken.items()}
    return [(kind, next(free[kind]) if index is None else index, name, type_) for kind, index, name, type_ in found]


def signatures(text):
    """{kernel: parameters} of a source of which `text` is the preprocessed form."""
    text = MARKER.sub("", without_library(text))
    found, templates, later = {}, {}, []
    for match in KERNEL.finditer(text):
        begin = max(text.rfind(c, 0, match.start()) for c in ";{}") + 1
        before = text[begin: match.start()]
        named = HOST_NAME.search(text, begin, match.end() + 200)
        function = FUNCTION.match(text, match.end())
        decltype = DECLTYPE.match(text, match.end())
        if function:
            end = closing(text, function.end() - 1)
            if end < 0:
                continue
            listed = parameters(text[function.end(): end])
            named = named if named and named.end() <= function.end() else None
            templates.setdefault(function[1], listed)
            if not re.search(r"\btemplate\s*<", before):
                found[named[1] if named else function[1]] = listed
        elif decltype and named and named.end() <= decltype.end():
            later.append((named[1], decltype[1]))
    for name, template in later:
        if template in templates:
            found[name] = templates[template]
    return found

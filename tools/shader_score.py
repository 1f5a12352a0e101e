# SPDX-License-Identifier: BSD-3-Clause
"""How many of the Metal kernels that a package ships compile here.

  tools/shader_score.py FOLDER | WHEEL | ARCHIVE...     what lies there
  tools/shader_score.py --package mlx-metal             a package: as it is installed, else its macOS wheel, fetched into a temporary folder

Looks for .metal files, for headers that hold kernels and that no .metal file includes, and for Metal text in string literals of Python, C++,
Objective-C++, Rust and Swift. Each is compiled for this machine's processor, with the folders that its own #include lines point to. What a
package does to its sources before it compiles them is said with --joined, --define, --include and --before. Exits with 1 when less than --goal
percent of the kernels compile. Sources are read where they are, and nothing of them is kept.

  tools/shader_score.py vllm_metal --define ROWS=2 --joined utils.metal mla.metal --joined utils.metal gdn.metal
"""

import argparse
import concurrent.futures
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT_SUFFIXES = {".py", ".mm", ".m", ".cpp", ".cc", ".h", ".hpp", ".rs", ".swift"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*(?:include|import)[ \t]*(["<])([^">]+)[">]', re.M)
KERNEL = re.compile(r"\bkernel\s+(?:\[\[[^\]]*\]\]\s*)?(?:void|decltype|[A-Za-z_]\w*\s+\w+\s*<)|\[\[\s*kernel\b")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STRING = re.compile(r'R"(?P<mark>[A-Za-z_]*)\((?P<raw>.*?)\)(?P=mark)"|"""(?P<double>.*?)"""|' r"'''(?P<single>.*?)'''" r'|r#+"(?P<rust>.*?)"#+', re.S)
PLACEHOLDER = re.compile(r"\$\{|\{\{|\{[A-Za-z_]\w*\}|%\(|\\\(|\$[0-9A-Z_]")
# What this compiler refuses by name: see docs/shaders.md.
REFUSED = re.compile(r"MetalPerformancePrimitives|metal_tensor|metal_raytracing|metal_cooperative|not available here|not supported here")
GRAPHICS = re.compile(r"^\s*(?:vertex|fragment|\[\[\s*(?:vertex|fragment|mesh|object)\b)", re.M)
SIMDGROUP = re.compile(r"'(?:metal::)?(?:simd_|simdgroup_|quad_|make_filled_simdgroup)\w*")


@dataclasses.dataclass
class Source:
    name: str  # as reported
    path: pathlib.Path
    folders: list
    kernels: int = 0
    compiled: int = 0
    state: str = ""  # compiled, failed, pending, refused
    message: str = ""


def unpack(archive, into):
    """A wheel or an sdist in a folder of its own."""
    into.mkdir(parents=True, exist_ok=True)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            z.extractall(into)
    else:
        with tarfile.open(archive) as t:
            t.extractall(into, filter="data")
    return into


def find_package(name, temporary):
    """(title, folder): the installed package's files, else those of its macOS wheel or sdist."""
    try:
        found = importlib.metadata.distribution(name)
        folder = pathlib.Path(found.locate_file(name.replace("-", "_")))
        if folder.is_dir() and any(folder.rglob("*.metal")):
            return f"{name} {found.version}", folder
    except importlib.metadata.PackageNotFoundError:
        pass
    into = temporary / f"fetched-{name}"
    platforms = [word for system in (15, 14, 13, 12, 11) for word in ("--platform", f"macosx_{system}_0_arm64")]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(into), name]
    fetched = subprocess.run([*command, "--only-binary=:all:", *platforms], capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        raise SystemExit(f"{name} is not installed and was not fetched: {fetched.stderr.strip().splitlines()[-1]}")
    archive = next(into.iterdir())
    return " ".join(archive.name.split("-")[:2]), unpack(archive, temporary / archive.name)


class Tree:
    """The files of a package by their names, to resolve #include lines as the package's own build would."""

    def __init__(self, root):
        self.root = root
        self.by_name = {}
        self.texts = {}
        for path in sorted(root.rglob("*")):
            if path.is_file() and ".git" not in path.parts:
                self.by_name.setdefault(path.name, []).append(path)

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = path.read_text(errors="replace")
        return self.texts[path]

    def resolve(self, included, beside):
        """(folder to name with -I, file) of an included name: the candidate that shares most of its path with the including file."""
        wanted = pathlib.PurePosixPath(included)
        plain = (beside / wanted).resolve()
        if plain.is_file():
            return None, plain
        parts = [part for part in wanted.parts if part not in (".", "..")]
        matches = [path for path in self.by_name.get(wanted.name, []) if path.parts[-len(parts):] == tuple(parts)]
        if not matches:
            return None, None
        best = max(matches, key=lambda path: (len(os.path.commonpath([path, beside])), -len(path.parts)))
        return best.parents[len(parts) - 1], best

    def reach(self, path, text=None):
        """(folders, files) that this source comes to by its #include lines."""
        folders, seen, queue = [], set(), [(path, text)]
        while queue:
            at, given = queue.pop()
            if at in seen:
                continue
            seen.add(at)
            for _, included in INCLUDE.findall(given if given is not None else self.text(at)):
                folder, file = self.resolve(included, at.parent)
                if folder and folder not in folders:
                    folders.append(folder)
                if file:
                    queue.append((file, None))
        return folders, seen - {path}


def strings_with_kernels(text):
    for match in STRING.finditer(text):
        body = next(group for group in (match["raw"], match["double"], match["single"], match["rust"], "") if group is not None)
        if ">>> " in body:  # a documentation's example
            continue
        if KERNEL.search(COMMENT.sub(" ", body)) and ("metal_stdlib" in body or "[[" in body or "device" in body):
            yield text.count("\n", 0, match.start()) + 1, body


def included_lines(names):
    return "".join(f'\n#include "{name}"' for name in names)


def macros(defines):
    """The #define lines of NAME and NAME=VALUE."""
    return "".join("#define {} {}\n".format(*(word.split("=", 1) if "=" in word else (word, 1))) for word in defines)


def wrap(path, temporary, number, before, defines):
    """A text that includes this file behind what its package puts in front of it, so that lines stay its own."""
    file = temporary / f"{path.stem}-{number}.metal"
    lines = ["#include <metal_stdlib>", "using namespace metal;", *(f'#include "{name}"' for name in before if name != path.name), f'#include "{path}"']
    file.write_text(macros(defines) + "\n".join(lines) + "\n")
    return file


def join(tree, names, temporary, number, defines):
    """One source of several: each text in its turn, without the #include lines that name one of the package's files, and with its own lines."""
    paths = [next((path for path in tree.by_name.get(pathlib.PurePath(name).name, []) if str(path).endswith(name)), None) for name in names]
    if None in paths:
        raise SystemExit(f"--joined names {names[paths.index(None)]}, which is not below {tree.root}")
    own = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"[^"]*"', re.M)
    file = temporary / f"joined-{number}.metal"
    file.write_text(macros(defines) + "".join(f'#line 1 "{path.name}"\n{own.sub("", tree.text(path))}\n' for path in paths))
    return Source(" + ".join(names), file, []), set(paths)


def find_sources(root, temporary, skip, before, defines=(), joined=()):
    tree, sources, reached = Tree(root), [], set()
    for names in joined:
        source, paths = join(tree, names, temporary, len(sources), defines)
        sources.append(source)
        reached |= paths
    joints = list(sources)
    metal = [path for paths in tree.by_name.values() for path in paths if path.suffix == ".metal" and not (skip and skip.search(str(path)))]
    for path in metal:
        folders, files = tree.reach(path)
        reached |= files
        if path not in reached:
            file = wrap(path, temporary, len(sources), before, defines) if before or defines else path
            sources.append(Source(str(path.relative_to(root)), file, [*tree.reach(path, tree.text(path) + included_lines(before))[0], path.parent]))
    sources = [source for source in sources if source in joints or root / source.name not in reached]
    others = [path for paths in tree.by_name.values() for path in paths if not (skip and skip.search(str(path)))]
    headers = [path for path in others if path.suffix == ".h" and path not in reached and KERNEL.search(COMMENT.sub(" ", tree.text(path)))]
    for path in headers:
        if "device" in tree.text(path) and 'R"' not in tree.text(path):  # else a header of the host, whose strings are Metal
            folders = tree.reach(path, tree.text(path) + included_lines(before))[0]
            sources.append(Source(str(path.relative_to(root)), wrap(path, temporary, len(sources), before, defines), folders))
    for path in others:
        if path.suffix not in TEXT_SUFFIXES or path.stat().st_size > 4 << 20 or "test" in path.name:
            continue
        for line, body in strings_with_kernels(tree.text(path)):
            if PLACEHOLDER.search(body):
                continue
            file = temporary / f"{path.stem}-{line}-{len(sources)}.metal"
            file.write_text(macros(defines) + "#line 1\n" + body)
            sources.append(Source(f"{path.relative_to(root)}:{line}", file, tree.reach(path, body)[0]))
    return sorted(sources, key=lambda source: source.name)


def compile_one(source, options, temporary, number):
    output = temporary / f"{number}.o"
    command = [options.compiler, "--clang", options.clang, "--include", options.headers, "--core", ROOT / "src", options.effort]
    for folder in [*source.folders, *options.include][:15]:
        command += ["-I", folder]
    # A limit of processor time, which the compilers below it have as well: wall time says nothing on a busy machine.
    limited = ["sh", "-c", f'ulimit -t {options.timeout}; exec "$@"', "sh", *command, "-o", output, source.path]
    done = subprocess.run([str(word) for word in limited], capture_output=True, text=True, check=False, errors="replace")
    code, said = done.returncode, done.stderr
    if code != 0 and re.search(r"signal (?:9|24)|[Kk]illed|CPU time", f"signal {-code} {said}"):
        said = f"{source.name}: error: took more than {options.timeout} s of processor time"
    listed, preprocessed = pathlib.Path(f"{output}.kernels"), pathlib.Path(f"{output}.ii")
    if code == 0:
        source.kernels = source.compiled = len(listed.read_text().splitlines())
        source.state = "compiled"
    else:
        text = preprocessed.read_text(errors="replace") if preprocessed.exists() else source.path.read_text(errors="replace")
        source.kernels = max(len(KERNEL.findall(COMMENT.sub(" ", text))), 1)
        errors = [line for line in said.splitlines() if "error:" in line] or [said.strip() or "failed without a word"]
        missing = [line for line in errors if SIMDGROUP.search(line)]
        source.state = "refused" if REFUSED.search(errors[0]) else "pending" if len(missing) == len(errors) else "failed"
        source.message = errors[0]
        if options.verbose:
            source.message = "\n".join(errors)
    for path in temporary.glob(f"{number}.o*"):
        path.unlink()
    return source


def score(title, sources):
    kernels, compiled = sum(s.kernels for s in sources), sum(s.compiled for s in sources)
    wanted = kernels - sum(s.kernels for s in sources if s.state == "refused")
    files = {state: sum(s.state == state for s in sources) for state in ("compiled", "failed", "pending", "refused")}
    return {"package": title, "files": len(sources), **files, "kernels": kernels, "kernels_compiled": compiled,
            "percent": round(100 * compiled / wanted, 1) if wanted else None, "sources": [
                {"name": s.name, "state": s.state, "kernels": s.kernels, "message": s.message} for s in sources]}


def progress_bar(total, quiet):
    try:
        from rich.progress import Progress
    except ImportError:
        Progress = None
    if quiet or Progress is None or not sys.stderr.isatty():
        return None
    from rich.console import Console
    bar = Progress(console=Console(stderr=True), transient=True)
    bar.start()
    return bar, bar.add_task("compiling", total=total)


def run(title, sources, options, temporary):
    bar = progress_bar(len(sources), options.json)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(compile_one, source, options, temporary, number) for number, source in enumerate(sources)]
        for item in concurrent.futures.as_completed(work):
            item.result()
            if bar:
                bar[0].advance(bar[1])
    if bar:
        bar[0].stop()
    return score(title, sources)


def show(result, options):
    print(f"{result['package']}: {result['compiled']} of {result['files']} sources, {result['kernels_compiled']} of {result['kernels']} kernels"
          + (f", {result['percent']} %" if result["percent"] is not None else ""))
    for source in result["sources"]:
        if source["state"] != "compiled" or options.verbose:
            print(f"  {source['state']:8} {source['kernels']:5}  {source['name']}" + (f"\n           {source['message']}" if source["message"] else ""))


def clang():
    if os.environ.get("OPENMPS_CLANG"):
        return os.environ["OPENMPS_CLANG"]
    found = importlib.util.find_spec("ziglang")
    return str(pathlib.Path(found.origin).parent / "zig") if found else "clang"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    parser.add_argument("--package", action="append", default=[])
    parser.add_argument("--include", "-I", action="append", default=[], type=pathlib.Path, help="a further folder for #include")
    parser.add_argument("--define", "-D", action="append", default=[], metavar="NAME=VALUE", help="a macro in front of each source")
    parser.add_argument("--joined", action="append", default=[], nargs="+", metavar="FILE",
                        help="files that the package joins to one source, in this order; each use is one source")
    parser.add_argument("--before", action="append", default=[], metavar="HEADER",
                        help="what the package puts in front of each source, as an #include line would name it")
    parser.add_argument("--skip", type=re.compile, help="paths that match this pattern are left out")
    parser.add_argument("--only", type=re.compile, help="only sources whose name matches this pattern")
    parser.add_argument("--headers", type=pathlib.Path, default=ROOT / "kernels/include", help="the folder of metal_stdlib")
    parser.add_argument("--compiler", type=pathlib.Path, default=ROOT / "build/dev/bin/openmps-metal")
    parser.add_argument("--clang", default=clang())
    parser.add_argument("--code", dest="effort", action="store_const", const="-O0", default="-fsyntax-only",
                        help="generate code, too; else the source is checked and every template instantiated, but no code written")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=600, help="seconds of processor time for a source")
    parser.add_argument("--goal", type=float, default=95.0, help="percent of the kernels, those refused by name left out")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if not options.paths and not options.package:
        parser.error("name a folder, a wheel, an archive or --package NAME")
    results = []
    with tempfile.TemporaryDirectory() as name:
        temporary = pathlib.Path(name)
        targets = [find_package(package, temporary) for package in options.package]
        for path in options.paths:
            if not path.exists():
                parser.error(f"{path} is not there")
            targets.append((path.name, path.resolve() if path.is_dir() else unpack(path, temporary / path.name)))
        for title, folder in targets:
            sources = find_sources(folder, temporary, options.skip, options.before, options.define, options.joined)
            if options.only:
                sources = [source for source in sources if options.only.search(source.name)]
            results.append(run(title, sources, options, temporary))
            if not options.json:
                show(results[-1], options)
    if options.json:
        print(json.dumps(results, indent=1))
    found = [result for result in results if result["kernels"]]
    if not found:
        print("no kernels found", file=sys.stderr)
        return 2
    return 0 if all(result["percent"] is None or result["percent"] >= options.goal for result in found) else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: BSD-3-Clause
"""`openmps metal`: lists the kernels of a Metal source, runs one on arrays, checks it, times it, or shows what the compiler makes of it.

Exit status: 0; 1 where the source is wrong or a kernel failed; 2 where the command line is.
"""
import argparse
import ctypes
import json
import os
import re
import statistics
import sys
import time

from openmps._metal_signatures import signatures, without_library

STAGES = ["preprocessed", "reader", "lanes", "checked", "llvm", "assembly"]  # in the order of mps_shader_stage
UNNAMED = "program_source"  # what the library calls a source
MOST_BUFFERS, MOST_FOLDERS, RUNS = 31, 7, 20
NO_KERNELS = "{} has no kernels: one begins with `kernel void NAME(...)`"

DESCRIPTION = """Works on the kernels of a Metal source, on this machine's processor. With FILE alone it lists them, or tells what is wrong in the source.

ARGUMENTs are bound in their order, from buffer 0 on:
  FILE.npy              the array in a file, as it is
  TYPE:FILE.npy         the same, converted: float:x.npy
  KIND:TYPE:SHAPE       a new array; KIND is zeros, ones, arange or random, SHAPE is 1024 or 4x256
  TYPE:VALUE[,VALUE]    numbers: int:5, float:1,2,3; uint:3,float:0.5 is a struct of both
  none                  nothing, for a buffer that the kernel does not look at
TYPE is Metal's name (float, half, bfloat, char, uchar, short, ushort, int, uint, long, ulong, bool) or numpy's (float32, ...), or complex64.

A run without --print, --save and --time prints the arrays that the kernel changed."""
EXAMPLES = """examples:
  openmps metal saxpy.metal
  openmps metal saxpy.metal x.npy y.npy float:2 --save 1=result.npy
  openmps metal blur.metal --kernel blur --threads 640,480 image.npy zeros:float:480x640 --print 1
  openmps metal saxpy.metal random:float:1000000 zeros:float:1000000 float:2 --time
  openmps metal saxpy.metal x.npy y.npy float:2 --check
  openmps metal saxpy.metal --emit llvm -o saxpy.ll

Results of bfloat are saved as uint16, their bits. exit status: 0; 1: the source is wrong or a kernel failed; 2: the command line is wrong."""


class Stop(Exception):
    """Ends the command with a text and an exit status."""

    def __init__(self, text, status=2):
        super().__init__(text)
        self.status = status


# ---- the source ----
class Source:
    def __init__(self, path):
        self.path = path
        self.name = "<stdin>" if path == "-" else path
        try:
            if path == "-":
                content = sys.stdin.buffer.read()
            else:
                with open(path, "rb") as file:
                    content = file.read()
            self.text = content.decode()
        except OSError as error:
            raise Stop(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError as error:
            raise Stop(f"{self.name} is no text in UTF-8: byte {error.start} is {content[error.start]:#04x}") from None
        if "\0" in self.text:
            raise Stop(f"{self.name} is no text: byte {self.text.index(chr(0))} is zero")

    def own(self, text):
        """A text of the library, with the user's name of the source."""
        return re.sub(rf"\b{UNNAMED}\b", lambda _: self.name, text)

    def line(self, file, number):
        """A line of this source, or of a file that it includes; None when it is not known."""
        text = self.text
        if file != self.name:
            try:
                with open(file, encoding="utf-8", errors="replace") as other:
                    text = other.read()
            except OSError:
                return None
        lines = text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else None

    def with_lines(self, message):
        """Each message with the line that it is about, and a mark below the column if there is one. Columns count bytes."""
        shown = []
        for said in self.own(message).splitlines():
            shown.append(said)
            place = re.match(r"(.+?):(\d+):(?:(\d+):)? ", said)
            line = self.line(place[1], int(place[2])) if place else None
            if line is None:
                continue
            shown.append(f"{place[2]:>5} | {line}")
            if place[3] and int(place[3]) > 0:
                before = line.encode()[: int(place[3]) - 1].decode(errors="ignore")
                shown.append("      | " + re.sub(r"[^\t]", " ", before) + "^")
        return "\n".join(shown)


def set_folders(source, given):
    """Where the source includes from: the folders given, and its own, as other compilers have it."""
    folders = list(given)
    if re.search(r'^[ \t]*#[ \t]*(?:include|import)[ \t]*"', source.text, re.M):
        folders.append(os.path.dirname(source.path) or "." if source.path != "-" else ".")
    for folder in folders:
        if not os.path.isdir(folder):
            raise Stop(f"-I {folder}: there is no such folder")
        if ":" in os.path.abspath(folder):
            raise Stop(f"{os.path.abspath(folder)}: the compiler takes no folders with a colon in their names; link to it by another name")
    folders = [os.path.abspath(f) for f in folders] + [f for f in os.environ.get("OPENMPS_SHADER_INCLUDE", "").split(":") if f]
    if len(folders) > MOST_FOLDERS:
        raise Stop(f"{len(folders)} folders to include from: at most {MOST_FOLDERS} are searched")
    if folders:
        os.environ["OPENMPS_SHADER_INCLUDE"] = ":".join(folders)


# ---- the library ----
def prepare():
    """torch, with the mps device of OpenMPS."""
    import torch

    import openmps

    if not openmps.is_active():
        raise Stop("OpenMPS is not active in this process (OPENMPS=0, another torch than it was built for, or torch has MPS of its own)", 1)
    from openmps import _bridge, _shaders

    _shaders.prepare(torch, _bridge)
    return torch


def compile_source(source):
    torch = prepare()
    try:
        return torch.mps.compile_shader(source.text)
    except SyntaxError as error:
        raise Stop(source.with_lines(error.msg), 1) from None
    except RuntimeError as error:
        raise Stop(source.own(str(error)), 1) from None


def emit(source, stage):
    """A stage's text, by include/openmps/library.h."""
    prepare()
    library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libopenmps.so"))
    library.mps_error_message.restype = ctypes.c_char_p
    device, text = ctypes.c_void_p(), ctypes.c_void_p()
    failed = library.mps_device_default(ctypes.byref(device)) or library.mps_shader_emit(
        device, source.text.encode(), UNNAMED.encode(), STAGES.index(stage), ctypes.byref(text))
    if failed:
        raise Stop(source.with_lines(library.mps_error_message().decode(errors="replace")), 1)
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    try:
        found = ctypes.string_at(text).decode(errors="replace")
        return re.sub(r"""[^\s"'<>]*/openmps-\w{6}/(?=(?:object|source)\.)""", "", found)  # the folder of this once; without it texts can be compared
    finally:
        free(text)


def emit_to(source, stage, path):
    text = emit(source, stage)
    text = source.own(without_library(text) if stage in ("preprocessed", "reader") else text)
    if path is None:
        sys.stdout.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Stop(f"-o {path}: {error.strerror or error}") from None


# ---- listing ----
def gather(source):
    """What is known of the kernels, as plain data."""
    library = compile_source(source)
    names = dir(library)
    known = signatures(emit(source, "preprocessed")) if names else {}
    facts = []
    for name in names:
        arguments = [{"kind": kind, "index": index, "name": argument, "type": type_} for kind, index, argument, type_ in known.get(name, [])]
        facts.append({"name": name, "max_threads_per_threadgroup": getattr(library, name).max_threads_per_threadgroup,
                      "arguments": arguments if name in known else None})
    return {"file": source.name, "kernels": facts}


def show(facts):
    kernels = facts["kernels"]
    if not kernels:
        print(NO_KERNELS.format(facts["file"]))
        return
    print(f"{facts['file']}: {len(kernels)} kernel{'s' if len(kernels) > 1 else ''}")
    for kernel in kernels:
        print(f"{kernel['name']}  (at most {kernel['max_threads_per_threadgroup']} threads a threadgroup)")
        if kernel["arguments"] is None:
            print("  arguments are not known")
        for argument in kernel["arguments"] or []:
            index = argument["index"] if argument["index"] >= 0 else "?"
            place = f"{argument['kind']} {index}"
            print(f"  {place:<14} {argument['name']:<12} {argument['type']}")


# ---- running ----
def chosen(library, name, source):
    names = dir(library)
    if not names:
        raise Stop(NO_KERNELS.format(source.name))
    if name is None and len(names) > 1:
        raise Stop(f"{source.name} has {len(names)} kernels, say which with --kernel: {', '.join(names)}")
    if name is not None and name not in names:
        raise Stop(f"--kernel {name}: {source.name} has no such kernel, but {', '.join(names)}")
    return name or names[0]


def sizes(text, option, least):
    """1 to 3 numbers."""
    if text is None:
        return None
    if not re.fullmatch(r"\d+([x,]\d+){0,2}", text):
        raise Stop(f"{option} {text}: give one to three numbers, as 1024 or 64,64")
    numbers = [int(n) for n in re.split("[x,]", text)]
    if min(numbers) < least or max(numbers) >= 1 << 63:
        raise Stop(f"{option} {text}: numbers are {least} or more, and less than 2^63")
    return numbers


def grid(options, arguments):
    """Threads and threads of a group, of as many dimensions."""
    threads, group = sizes(options.threads, "--threads", 0), sizes(options.group, "--group", 1)
    if threads is None:
        first = next((a for a in arguments if a.counts and a.array is not None), None)
        if first is None:
            raise Stop("--threads is missing: it is the number of elements of the first array, and no array is given")
        threads = [first.array.size]
    if group is not None:
        length = max(len(threads), len(group))
        threads, group = threads + [1] * (length - len(threads)), group + [1] * (length - len(group))
    return threads, group


def check_group(group, kernel, name):
    if group is None:
        return
    product = 1
    for size in group:
        product *= size
    if product > kernel.max_threads_per_threadgroup:
        raise Stop(f"--group {','.join(map(str, group))} is {product} threads: '{name}' takes at most {kernel.max_threads_per_threadgroup}")


class Places:
    """Arguments by number or, where the source tells it, by name."""

    def __init__(self, source, name, arguments):
        self.source, self.kernel, self.arguments, self.known = source, name, arguments, None

    def names(self):
        if self.known is None:
            listed = signatures(emit(self.source, "preprocessed")).get(self.kernel, [])
            self.known = {argument: index for kind, index, argument, _ in listed if kind == "buffer"}
        return self.known

    def of(self, word, option):
        index = int(word) if word.isdigit() else self.names().get(word, -1)
        if 0 <= index < len(self.arguments) and self.arguments[index].array is not None:
            return index
        given = f"{len(self.arguments)} arguments are given" if self.arguments else "no arguments are given"
        raise Stop(f"{option} {word}: there is no such array; {given}" + (", numbered from 0" if self.arguments else "")
                   + ("" if word.isdigit() else f"; '{self.kernel}' names {', '.join(self.names()) or 'none'}"))

    def saved(self, items):
        """[(index, file)] of INDEX=FILE texts."""
        result = []
        for item in items:
            word, equals, path = item.partition("=")
            if not equals or not path:
                raise Stop(f"--save {item}: write INDEX=FILE.npy, as 0=out.npy")
            if not path.endswith(".npy"):
                raise Stop(f"--save {item}: results are written as .npy files")
            result.append((self.of(word, "--save"), path))
        return result


def check_threadgroup_memory(source, name):
    """Its length comes from the program, and torch has no way to say it."""
    if "threadgroup" not in source.text:
        return
    for kind, index, argument, _ in signatures(emit(source, "preprocessed")).get(name, []):
        if kind == "threadgroup":
            raise Stop(f"'{name}' takes threadgroup memory ({argument}, index {index}), whose length only a program can give: "
                       "declare an array of a fixed length in the kernel")


class Run:
    """A kernel with its memory on the device."""

    def __init__(self, torch, kernel, name, arguments, threads, group):
        self.torch, self.kernel, self.name, self.arguments = torch, kernel, name, arguments
        self.threads, self.group = threads, group
        self.contents = [torch.from_numpy(a.bytes()) for a in arguments]
        self.memory = [content.to("mps") for content in self.contents]

    def restore(self):
        for memory, content in zip(self.memory, self.contents):
            memory.copy_(content)
        self.torch.mps.synchronize()

    def once(self):
        """Seconds that the kernel took, with handing it over."""
        begin = time.perf_counter()
        try:
            self.kernel(*self.memory, threads=self.threads, group_size=self.group)
            self.torch.mps.synchronize()
        except self.torch.AcceleratorError as error:
            raise Finding(str(error)) from None
        except (RuntimeError, ValueError) as error:
            raise Stop(str(error)) from None
        return time.perf_counter() - begin

    def timed(self, runs):
        """Each run finds the arrays as they were given."""
        self.once()
        seconds = []
        for _ in range(runs):
            self.restore()
            seconds.append(self.once())
        median, size = statistics.median(seconds), sum(content.numel() for content in self.contents)
        return {"runs": runs, "median_seconds": median, "min_seconds": min(seconds), "bytes": size, "gigabytes_per_second": size / median * 1e-9}

    def results(self):
        return [a if a.array is None else a.read(memory.cpu().numpy()) for a, memory in zip(self.arguments, self.memory)]


class Finding(Exception):
    """What a kernel did wrong."""


def save(path, result):
    import numpy

    try:
        with open(path, "wb") as file:
            numpy.save(file, result.array)
    except OSError as error:
        raise Stop(f"--save {path}: {error.strerror or error}", 1) from None
    if result.bfloat:
        print(f"openmps metal: {path} holds the bits of bfloat as uint16, for numpy has no bfloat", file=sys.stderr)


def print_array(index, result):
    print(f"{index}: {result.type_name} {list(result.array.shape)}")
    print(result.shown())


def print_time(facts):
    scale, unit = next((s, u) for s, u in ((1, "s"), (1e3, "ms"), (1e6, "us")) if facts["median_seconds"] * s >= 1 or u == "us")
    print(f"median {facts['median_seconds'] * scale:.3f} {unit}, min {facts['min_seconds'] * scale:.3f} {unit} of {facts['runs']} runs; "
          f"{facts['bytes']} bytes bound, {facts['gigabytes_per_second']:.3f} GB/s")


def parse_arguments(options):
    try:
        import numpy
    except ImportError:
        raise Stop("running a kernel needs numpy, for arrays and .npy files: pip install 'openmps[shaders]'", 1) from None
    from openmps._metal_values import Refusal, argument

    if len(options.arguments) > MOST_BUFFERS:
        raise Stop(f"{len(options.arguments)} arguments are given: Metal binds at most {MOST_BUFFERS} buffers")
    random = numpy.random.default_rng(options.seed)
    try:
        return [argument(text, random) for text in options.arguments]
    except Refusal as error:
        raise Stop(str(error)) from None


def run(source, options):
    arguments = parse_arguments(options)
    threads, group = grid(options, arguments)
    library = compile_source(source)
    name = chosen(library, options.kernel, source)
    kernel = getattr(library, name)
    check_group(group, kernel, name)
    places = Places(source, name, arguments)
    saved, printed = places.saved(options.save), [places.of(word, "--print") for word in options.print]
    check_threadgroup_memory(source, name)
    work = Run(prepare(), kernel, name, arguments, threads, group)
    try:
        times = work.timed(options.time) if options.time else None
        if not times:
            work.once()
    except Finding as error:
        raise Stop(source.with_lines(str(error)), 1) from None
    results = work.results()
    for index, path in saved:
        save(path, results[index])
    changed = [i for i, (a, b) in enumerate(zip(arguments, results)) if a.bytes().tobytes() != b.bytes().tobytes()]
    if options.json:
        json.dump({"file": source.name, "kernel": name, "threads": threads, "group": group, "changed": changed, "time": times}, sys.stdout, indent=2)
        print()
        return
    quiet = printed or saved or times
    for index in printed if quiet else changed:
        print_array(index, results[index])
    if times:
        print_time(times)
    if not quiet and not changed:
        print(f"{name} ran over {' x '.join(map(str, threads))} threads and changed none of its arrays")


# ---- the command line ----
def parser():
    p = argparse.ArgumentParser(prog="openmps metal", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                                usage="openmps metal FILE [--kernel NAME] [--threads X,Y,Z] [options] [ARGUMENT...]", allow_abbrev=False)
    p.add_argument("file", metavar="FILE", help="a Metal source; - reads it from standard input")
    p.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="what is bound to buffers 0, 1, ...")
    p.add_argument("--kernel", metavar="NAME", help="the kernel to run; default: the only one")
    p.add_argument("--threads", metavar="X[,Y[,Z]]", help="the whole grid; default: the number of elements of the first array")
    p.add_argument("--group", metavar="X[,Y[,Z]]", help="threads of a threadgroup; default: as many as the kernel takes")
    p.add_argument("--print", metavar="INDEX", action="append", default=[], help="prints this argument after the run, by its number or its name in the source")
    p.add_argument("--save", metavar="INDEX=FILE.npy", action="append", default=[], help="writes this argument to a file after the run")
    p.add_argument("--seed", type=int, default=0, help="of random arrays; default: 0")
    p.add_argument("--check", action="store_true", help="looks at every access of the kernel and tells what is wrong (OPENMPS_SHADER_VALIDATION)")
    p.add_argument("--time", metavar="N", type=int, help=f"times N runs, {RUNS} without a number, after one that is not counted")
    p.add_argument("--emit", metavar="STAGE", choices=STAGES, help="prints what the compiler makes of the source: " + ", ".join(STAGES))
    p.add_argument("-o", metavar="FILE", dest="output", help="where --emit writes; default: standard output")
    p.add_argument("-I", metavar="FOLDER", dest="folders", action="append", default=[],
                   help="a folder to include from, before that of FILE and those of OPENMPS_SHADER_INCLUDE")
    p.add_argument("--json", action="store_true", help="the list, or what came of the run, as JSON")
    return p


def parse(words):
    words = [f"--time={RUNS}" if word == "--time" and not re.fullmatch(r"-?\d+", next_word or "") else word
             for word, next_word in zip(words, [*words[1:], None])]
    options = parser().parse_intermixed_args(words)
    runs = [name for name in ("kernel", "arguments", "threads", "group", "print", "save", "time") if getattr(options, name) not in (None, [])]
    if options.time is not None and options.time < 1:
        raise Stop(f"--time {options.time}: the number of runs is 1 or more")
    if options.seed < 0:
        raise Stop(f"--seed {options.seed}: seeds are 0 or more")
    if options.emit and (runs or options.json):
        given = runs[0] if runs else "json"
        raise Stop("--emit shows the whole source and runs nothing: leave " + ("the arguments" if given == "arguments" else f"--{given}") + " out")
    if options.output and not options.emit:
        raise Stop(f"-o {options.output} belongs to --emit; results are written with --save INDEX=FILE.npy")
    if options.json and options.print:
        raise Stop("--print and --json are two forms of output: save the array with --save INDEX=FILE.npy")
    if options.check and not runs and not options.emit:
        raise Stop("--check looks at a run: give the kernel's arguments")
    return options, bool(runs)


def work(words):
    options, runs = parse(words)
    source = Source(options.file)
    set_folders(source, options.folders)
    if options.check:
        os.environ["OPENMPS_SHADER_VALIDATION"] = "1"  # it is read when the first source is compiled
    if options.emit:
        emit_to(source, options.emit, options.output)
    elif runs:
        run(source, options)
    else:
        facts = gather(source)
        if options.json:
            json.dump(facts, sys.stdout, indent=2)
            print()
        else:
            show(facts)


def main(words):
    try:
        work(words)
        sys.stdout.flush()
    except Stop as stop:
        print(f"openmps metal: {stop}" if stop.status == 2 else str(stop), file=sys.stderr)
        return stop.status
    except BrokenPipeError:  # `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0

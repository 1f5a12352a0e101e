# SPDX-License-Identifier: BSD-3-Clause
"""What stands for a kernel's argument on the command line, as bytes: arrays from files, new arrays, numbers. Needs numpy and no device."""
import os
import re

import numpy

# Metal's name, numpy's name. bfloat has no numpy type: its bits are kept as uint16.
TYPES = {
    "bool": "bool", "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32", "long": "int64",
    "ulong": "uint64", "half": "float16", "float": "float32", "bfloat": "bfloat16", "complex64": "complex64",
}
KINDS = ("zeros", "ones", "arange", "random")
FORMS = """an argument is one of
  FILE.npy              the array in a file, as it is
  TYPE:FILE.npy         the same, converted
  KIND:TYPE:SHAPE       a new array: KIND is zeros, ones, arange or random, SHAPE is 1024 or 4x256
  TYPE:VALUE[,VALUE]    numbers: int:5, float:1,2,3; uint:3,float:0.5 is a struct of both
  none                  nothing, for a buffer that the kernel does not look at"""


class Refusal(Exception):
    """What the user gave cannot be: the text says what, and what to do."""


class Argument:
    """`array`: C order, native bytes, bits of bfloat as uint16; None for `none`. `counts`: its elements are the default of --threads."""

    def __init__(self, text, array, bfloat=False, counts=True):
        self.text, self.bfloat, self.counts = text, bfloat, counts
        self.array = None if array is None else numpy.asarray(array, order="C")

    @property
    def type_name(self):
        return "bfloat16" if self.bfloat else "struct" if self.array.dtype.names else str(self.array.dtype)

    def bytes(self):
        """Its memory as an array of bytes of one dimension; writable."""
        if self.array is None:
            return numpy.empty(0, numpy.uint8)
        return self.array.reshape(-1).view(numpy.uint8).copy()

    def read(self, content):
        """An Argument of the same type and shape from bytes."""
        return Argument(self.text, content.view(self.array.dtype).reshape(self.array.shape), self.bfloat, self.counts)

    def shown(self):
        """The values, for people: those of bfloat are floats."""
        return from_bfloat(self.array) if self.bfloat else self.array


# ---- types ----
def to_bfloat(array):
    """The bits of the nearest bfloat, of two as near the even one."""
    bits = numpy.ascontiguousarray(array, numpy.float32).view(numpy.uint32)
    rounded = ((bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16).astype(numpy.uint16)
    return numpy.where(numpy.isnan(array), numpy.uint16(0x7FC0), rounded).reshape(numpy.shape(array))


def from_bfloat(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def type_named(word, text):
    """numpy's name of a type, by either name."""
    if word in TYPES:
        return TYPES[word]
    if word in TYPES.values():
        return word
    if word in ("float64", "double", "complex128"):
        raise Refusal(f"'{text}': Metal has no {word}; use {'complex64' if word == 'complex128' else 'float32'}")
    raise Refusal(f"'{text}': '{word}' is no type; known are {', '.join(TYPES)} and numpy's names for them")


def converted(array, name, text):
    """(array, is bfloat), as C converts: integers wrap, what is too large for a half becomes infinite."""
    if array.dtype.kind == "c" and name != "complex64":
        raise Refusal(f"'{text}': {array.dtype} does not become {name}; save its real or imaginary part")
    if array.dtype.kind not in "biufc":
        raise Refusal(f"'{text}': {array.dtype} does not become {name}: only numbers are converted")
    with numpy.errstate(over="ignore", invalid="ignore"):
        return (to_bfloat(array.astype(numpy.float32)), True) if name == "bfloat16" else (array.astype(name), False)


# ---- files ----
def load(path):
    try:
        with open(path, "rb") as file:
            if file.peek(6)[:6] != b"\x93NUMPY":
                raise Refusal(f"{path} is no .npy file: it does not begin with \\x93NUMPY; numpy.save writes them")
            array = numpy.load(file, allow_pickle=False)
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise Refusal(f"{path} is no .npy file of numbers: {error}") from None
    return array.astype(array.dtype.newbyteorder("=")) if array.dtype.kind != "V" else array


def check_file(array, path):
    """Types whose bytes mean something to a kernel; those of structs are the user's affair."""
    dtype = array.dtype
    if dtype in (numpy.dtype("float64"), numpy.dtype("complex128")):
        to = "float32" if dtype.kind == "f" else "complex64"
        raise Refusal(f"{path} holds {dtype}, which Metal does not have: write {to}:{path} to convert it")
    if dtype.hasobject or not (dtype.kind in "biuV" or dtype in (numpy.dtype("float16"), numpy.dtype("float32"), numpy.dtype("complex64"))):
        raise Refusal(f"{path} holds {dtype}, which kernels cannot use: save it as one of {', '.join(sorted(set(TYPES.values()) - {'bfloat16'}))}")


# ---- new arrays ----
def shape_of(word, text):
    if not re.fullmatch(r"\d+([x,]\d+)*", word):
        raise Refusal(f"'{text}': '{word}' is no shape; write 1024 or 4x256")
    return tuple(int(n) for n in re.split("[x,]", word))


def drawn(shape, dtype, random):
    """Floats from 0 to 1, integers from 0 to 99, bools."""
    if dtype.kind == "b":
        return random.integers(0, 2, shape)
    if dtype.kind in "iu":
        return random.integers(0, 100, shape)
    real = random.random(shape, numpy.float32)
    return real + 1j * random.random(shape, numpy.float32) if dtype.kind == "c" else real


def made(kind, rest, text, random):
    word, colon, size = rest.partition(":")
    if not colon:
        raise Refusal(f"'{text}' wants a type and a shape, as {kind}:float32:1024")
    name, shape = type_named(word, text), shape_of(size, text)
    dtype = numpy.dtype("float32" if name == "bfloat16" else name)
    try:
        if kind == "random":
            array = drawn(shape, dtype, random)
        elif kind == "arange":
            array = numpy.arange(numpy.prod(shape, dtype=numpy.int64)).reshape(shape)
        else:
            array = numpy.full(shape, kind == "ones", dtype)
        return Argument(text, *converted(array, name, text))
    except (MemoryError, OverflowError, ValueError) as error:
        raise Refusal(f"'{text}': an array of {size} {name} cannot be made: {error}") from None


# ---- numbers ----
def number(word, name, text):
    """One number of a type, as numpy has it."""
    try:
        if name == "bool":
            return {"true": True, "false": False, "1": True, "0": False}[word]
        value = int(word, 0) if "int" in name else complex(word) if name == "complex64" else float(word)
    except (ValueError, KeyError):
        raise Refusal(f"'{text}': '{word}' is no {name}") from None
    if "int" in name:
        limits = numpy.iinfo(name)
        if not limits.min <= value <= limits.max:
            raise Refusal(f"'{text}': {word} does not fit {name}, which goes from {limits.min} to {limits.max}")
        return value
    with numpy.errstate(over="ignore"):
        nearest = from_bfloat(to_bfloat(numpy.float32(value))) if name == "bfloat16" else numpy.dtype(name).type(value)
    if numpy.isinf(nearest) and not numpy.isinf(value):
        raise Refusal(f"'{text}': {word} does not fit {name}")
    return value


def numbers(text):
    """Numbers of one type are an array; of several, a struct as C lays it out. A type holds until the next one."""
    name, values = None, []
    for item in text.split(","):
        word, colon, rest = item.partition(":")
        if colon:
            name = type_named(word, text)
        if name is None:
            raise Refusal(f"'{text}': '{item}' has no type; write int:{item} or float:{item}")
        values.append((name, number(rest if colon else item, name, text)))
    if len({name for name, _ in values}) == 1:
        array = numpy.array([value for _, value in values], "float32" if name == "bfloat16" else name)
        array = array[0] if len(values) == 1 else array
        return Argument(text, *converted(numpy.asarray(array), name, text), counts=False)
    fields = [(f"f{i}", "uint16" if name == "bfloat16" else name) for i, (name, _) in enumerate(values)]
    row = tuple(int(to_bfloat(numpy.float32(value))) if name == "bfloat16" else value for name, value in values)
    struct = numpy.zeros(1, numpy.dtype(fields, align=True))  # what lies between its members is zero
    struct[0] = row
    return Argument(text, struct[0:1].reshape(()), counts=False)


def argument(text, random):
    """What `text` stands for; `random`: a numpy generator."""
    head, colon, rest = text.partition(":")
    if text == "none":
        return Argument(text, None)
    if head in KINDS and colon:
        return made(head, rest, text, random)
    if rest.endswith(".npy") and head.isidentifier() and not os.path.exists(text):
        name = type_named(head, text)
        return Argument(text, *converted(load(rest), name, text))
    if text.endswith(".npy"):
        array = load(text)
        check_file(array, text)
        return Argument(text, array)
    if colon:
        return numbers(text)
    raise Refusal(f"'{text}' is no argument: {FORMS}")

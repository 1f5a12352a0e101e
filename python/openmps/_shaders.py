# SPDX-License-Identifier: BSD-3-Clause
"""torch.mps.compile_shader and load_metallib: the bindings, and what compiling needs to know of this installation."""
import functools
import importlib.util
import os

BINDINGS = ("_mps_loadMetalllib", "_mps_loadMetallibFromPath", "_mps_ShaderLibrary", "_mps_PrecompiledShaderLibrary", "_mps_MetalKernel")


def _compiler():
    """The clang of the ziglang package of this Python, if it is installed."""
    package = importlib.util.find_spec("ziglang")
    return os.path.join(package.submodule_search_locations[0], "zig") if package and package.submodule_search_locations else None


@functools.cache
def prepare(torch, bridge):
    """Tells the library where this installation has headers and a compiler; before the first source is compiled."""
    bridge.add_shader_include(os.path.join(os.path.dirname(torch.__file__), "include"))  # for c10/metal
    compiler = _compiler()
    if compiler:
        bridge.offer_shader_compiler(compiler)


def install(torch, bridge):
    for name in BINDINGS:
        setattr(torch._C, name, getattr(bridge, name))

    def compile_source(source):
        prepare(torch, bridge)
        return bridge._mps_compileShader(source)

    @functools.wraps(torch.mps.compile_shader)
    def compile_shader(source):
        # Upstream writes headers into the source first. Here they are included, so that errors name the user's own lines.
        return torch._C._mps_compileShader(source)

    torch._C._mps_compileShader = compile_source
    torch.mps.compile_shader = compile_shader

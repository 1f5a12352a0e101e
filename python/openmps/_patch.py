# SPDX-License-Identifier: BSD-3-Clause
"""What a torch that was built without MPS lacks in Python: the flag, a few bindings, and storages."""
import contextlib
import sys


def _make_room():
    """torch itself registers one kernel for mps, of linalg_lu_solve.out in Python. It leaves an empty out= as it is, and registering over it warns."""
    library = getattr(sys.modules.get("torch._refs.linalg"), "mps_lib", None)
    if library is not None:
        library._destroy()


def install(torch):
    """Loads the bridge and completes torch. False when torch answered for mps before, and will not ask again."""
    _make_room()  # before the bridge registers its own
    from . import _bridge, _exit, _shaders

    if not torch._C._mps_is_available():
        return False
    torch._C._has_mps = True
    _bridge.set_commit(torch.version.git_version or "unknown")
    _add_bindings(torch, _bridge)
    _shaders.install(torch, _bridge)
    _add_storages(torch, _bridge)
    _open_gates(torch)
    _exit.install(torch)
    for query in ("is_available", "is_macos_or_newer", "is_macos13_or_newer", "get_name", "get_core_count"):
        getattr(getattr(torch.backends.mps, query, None), "cache_clear", lambda: None)()
    return True


def _add_bindings(torch, bridge):
    """The part of torch._C._mps_* that exists only in builds with MPS."""
    torch._C._mps_get_name = lambda: bridge.device_info()["name"]
    torch._C._mps_get_core_count = lambda: bridge.device_info()["core_count"]
    torch._C._mps_isCaptureEnabled = lambda: False
    torch._C._mps_isCapturing = lambda: False


def _add_storages(torch, bridge):
    """Storages on mps: their construction and resizing are closed in a build without MPS."""
    cls = torch.UntypedStorage
    construct, resize = cls.__new__, cls.resize_

    def __new__(kind, *args, **kwargs):
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "mps":
            return construct(kind, *args, **kwargs)
        content = args[0] if args else 0
        if isinstance(content, int):
            return bridge.new_untyped_storage(kind, content)
        return bridge.new_untyped_storage(kind, len(content)).copy_(torch.UntypedStorage(content))

    def resize_(self, size):
        if self.device.type != "mps":
            return resize(self, size)
        bridge.resize_untyped_storage(self, size)
        return self

    cls.__new__, cls.resize_ = __new__, resize_


def _open_gates(torch):
    """Places that ask for a list of devices, or for a module's attributes, before they let mps tensors in."""
    clip = torch.nn.utils.clip_grad
    has_foreach = clip._device_has_foreach_support
    clip._device_has_foreach_support = lambda device: device.type == "mps" or has_foreach(device)

    # torch.utils.checkpoint replays random numbers only for modules that say they are initialized and can choose a device.
    torch.mps._initialized = True
    torch.mps.device = contextlib.nullcontext

"""file_handles.py take FILE: prints a handle of a file. file_handles.py open MOUNT HANDLE: opens it, and prints what it
is, or the number of the error."""

import ctypes, os, stat, sys

AT_FDCWD = -100
libc = ctypes.CDLL(None, use_errno=True)


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint32), ("type", ctypes.c_int32), ("handle", ctypes.c_ubyte * 128)]


def take(path):
    handle, mount = Handle(bytes=128), ctypes.c_int()
    if libc.name_to_handle_at(AT_FDCWD, path.encode(), ctypes.byref(handle), ctypes.byref(mount), 0) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return f"{handle.type}:{bytes(handle.handle[:handle.bytes]).hex()}"


def open_handle(mount, text):
    kind, value = text.split(":")
    value = bytes.fromhex(value)
    handle = Handle(bytes=len(value), type=int(kind), handle=(ctypes.c_ubyte * 128)(*value))
    file = libc.open_by_handle_at(os.open(mount, os.O_RDONLY), ctypes.byref(handle), os.O_RDONLY)
    if file < 0:
        return f"error {ctypes.get_errno()}"
    if stat.S_ISDIR(os.fstat(file).st_mode):
        return " ".join(sorted(os.listdir(file))) + f" in {os.readlink(f'/proc/self/fd/{file}')}"
    return os.read(file, 100).decode()


print(take(sys.argv[2]) if sys.argv[1] == "take" else open_handle(sys.argv[2], sys.argv[3]))

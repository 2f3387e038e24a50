"""asynchronous_writes.py FILE ROUNDS: writes a file with O_DIRECT through Linux's asynchronous I/O while threads read it
through the page cache, and counts rounds after which a new reader finds other bytes than were written last."""

import ctypes, mmap, os, sys, threading

PATH, ROUNDS, BLOCKS, BLOCK = sys.argv[1], int(sys.argv[2]), 64, 4096
NUMBERS = {"x86_64": (206, 208, 209), "aarch64": (0, 4, 2)}
SETUP, GETEVENTS, SUBMIT = NUMBERS[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)


class Iocb(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64), ("key", ctypes.c_uint32), ("rw_flags", ctypes.c_int32),
        ("opcode", ctypes.c_uint16), ("priority", ctypes.c_int16), ("fd", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("eventfd", ctypes.c_uint32),
    ]


class Event(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("iocb", ctypes.c_uint64), ("result", ctypes.c_int64), ("more", ctypes.c_int64)]


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


cached = os.open(PATH, os.O_RDWR | os.O_CREAT, 0o644)
os.pwrite(cached, bytes(BLOCKS * BLOCK), 0)
os.fsync(cached)
direct = os.open(PATH, os.O_RDWR | os.O_DIRECT)
context = ctypes.c_uint64(0)
called(libc.syscall(SETUP, BLOCKS, ctypes.byref(context)))
memory = mmap.mmap(-1, BLOCKS * BLOCK)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
ends = threading.Event()


def read_all_the_time():
    while not ends.is_set():
        for block in range(BLOCKS):
            os.pread(cached, BLOCK, block * BLOCK)


def write(byte):
    memory[:] = bytes([byte]) * (BLOCKS * BLOCK)
    iocbs = [
        Iocb(opcode=1, fd=direct, buffer=address + block * BLOCK, bytes=BLOCK, offset=block * BLOCK)
        for block in range(BLOCKS)
    ]
    list_of = (ctypes.POINTER(Iocb) * BLOCKS)(*[ctypes.pointer(iocb) for iocb in iocbs])
    sent = 0
    while sent < BLOCKS:
        sent += called(libc.syscall(SUBMIT, context, BLOCKS - sent, ctypes.byref(list_of, sent * 8)))
    events, done = (Event * BLOCKS)(), 0
    while done < BLOCKS:
        count = called(libc.syscall(GETEVENTS, context, 1, BLOCKS, events, None))
        assert all(event.result == BLOCK for event in events[:count]), [event.result for event in events[:count]]
        done += count


readers = [threading.Thread(target=read_all_the_time) for _ in range(2)]
for reader in readers:
    reader.start()
stale = 0
for number in range(1, ROUNDS + 1):
    write(number % 256)
    with open(PATH, "rb") as another:
        stale += another.read() != bytes([number % 256]) * (BLOCKS * BLOCK)
ends.set()
for reader in readers:
    reader.join()
print(f"{stale} of {ROUNDS} rounds left stale pages")

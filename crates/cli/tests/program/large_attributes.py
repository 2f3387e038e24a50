"""large_attributes.py set|check FILE: extended attributes as long as Linux lets them be."""

import errno, os, sys

path = sys.argv[2]
values = {f"user.number{number}": bytes([number]) * (9000 * number) for number in range(1, 6)}
values["user.largest"] = bytes(range(256)) * 256
values["trusted.small"] = b"s"


def fails(name, value, number):
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        assert error.errno == number, (name, error)
    else:
        raise AssertionError(f"{name} can be set")


if sys.argv[1] == "set":
    for name, value in values.items():
        os.setxattr(path, name, value)
    os.setxattr(path, "user.shrinks", bytes(50_000))
    os.setxattr(path, "user.shrinks", b"shrunk")
    os.setxattr(path, "user.goes", bytes(60_000))
    os.removexattr(path, "user.goes")
    fails("user.longer", bytes(65537), errno.E2BIG)
    more = 0
    try:
        while more < 64:
            os.setxattr(path, f"user.more{more}", bytes(65536))
            more += 1
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    assert 24 <= more < 64, more
    for number in range(more):
        os.removexattr(path, f"user.more{number}")
    file = os.open(path, os.O_RDWR)
    os.fsync(file)
values["user.shrinks"] = b"shrunk"
assert sorted(os.listxattr(path)) == sorted(values), os.listxattr(path)
for name, value in values.items():
    assert os.getxattr(path, name) == value, name

"""YCSB's workload A as traces of RocksDB, which `db_bench --benchmarks=replay` runs.

    ycsb.py load RECORDS FILE                 the records that the load phase inserts
    ycsb.py run RECORDS OPERATIONS FILE       half reads, half updates

As the core workload of YCSB and its binding for RocksDB have it: records of ten fields of 100 bytes; keys are `user` and a hash of the record's
number; a request's record is of Zipf's distribution (0.99) over 10^10 items, whose hash chooses among the records; an update of a field reads the record
and writes all of it.

A trace (version 0.2 of RocksDB's format) is a sequence of entries: time (8 bytes), type (1), length of the payload (4), payload; integers are little-endian. A payload begins with a
set of bits (8 bytes) that tells its fields. All times are the same: nothing waits.
"""

import random
import struct
import sys

FIELDS, FIELD_BYTES = 10, 100
BEGIN, END, WRITE, GET = 1, 2, 3, 4
HEADER = b"feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 7.8\tFormat: Timestamp OpType Payload\n"
# Bits of the fields of payloads.
BATCH, FAMILY, KEY = 1 << 1, 1 << 2, 1 << 3

THETA = 0.99
ITEMS = 10_000_000_000
# The sum of n^-0.99 over these items, as YCSB has it.
ZETA = 26.46902820178302


def hashed(number):
    """FNV-1a of the number's eight bytes, without its sign."""
    found = 0xCBF29CE484222325
    for byte in struct.pack("<Q", number):
        found = (found ^ byte) * 1099511628211 % 2**64
    return min(found, 2**64 - found)


def key_of(record):
    return b"user%d" % hashed(record)


def zipf(draw):
    """A rank of Zipf's distribution, 0 the most frequent: by Gray et al., Quickly Generating Billion-Record Synthetic Databases."""
    scaled = draw * ZETA
    if scaled < 1:
        return 0
    if scaled < 1 + 0.5**THETA:
        return 1
    eta = (1 - (2 / ITEMS) ** (1 - THETA)) / (1 - (1 + 0.5**THETA) / ZETA)
    return int(ITEMS * (eta * draw - eta + 1) ** (1 / (1 - THETA)))


def with_length(text):
    """The bytes behind their length, of seven bits a byte."""
    length, coded = len(text), b""
    while length >= 128:
        coded, length = coded + bytes([length & 127 | 128]), length >> 7
    return coded + bytes([length]) + text


def entry(kind, payload):
    return struct.pack("<QBI", 1, kind, len(payload)) + payload


def put(key, value):
    batch = struct.pack("<QI", 0, 1) + b"\x01" + with_length(key) + with_length(value)
    return entry(WRITE, struct.pack("<Q", BATCH) + with_length(batch))


def get(key):
    return entry(GET, struct.pack("<QI", FAMILY | KEY, 0) + with_length(key))


def load(records):
    for record in range(records):
        yield put(key_of(record), b"%04d" % (record % 10000) * (FIELDS * FIELD_BYTES // 4))


def run(records, operations):
    source = random.Random(1)
    for operation in range(operations):
        key = key_of(hashed(zipf(source.random())) % records)
        yield get(key)
        if source.random() < 0.5:
            yield put(key, b"%04d" % (operation % 10000) * (FIELDS * FIELD_BYTES // 4))


def main(kind, *rest):
    *numbers, target = rest
    entries = {"load": load, "run": run}[kind](*map(int, numbers))
    with open(target, "wb") as file:
        file.write(entry(BEGIN, HEADER))
        file.writelines(entries)
        file.write(entry(END, struct.pack("<Q", 0)))


if __name__ == "__main__":
    main(*sys.argv[1:])

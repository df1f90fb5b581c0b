"""What must hold in the bytes of an HDF5 file before the HDF5 library may see it.

Version 2.0 of the library does not survive two kinds of forged texts, both found by flipping bytes. It steps through a
heap of texts by the sizes that the entries claim, and free space of size 0 keeps it there for ever; and it makes room
for the length that an attribute claims, up to 4 GiB, before it looks for the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

SIGNATURE = b"\x89HDF\r\n\x1a\n"
# The attributes of Keras files that hold texts; the last two may be cut into numbered pieces.
NAMES = re.compile(rb"(?:model_config|keras_version|name|layer_names\d*|weight_names\d*)\0")
TEXT = 16  # bytes of a text of variable length: its length, and where in which heap it lies
VARIABLE = 9  # the class of such a type


def damaged(content: bytes) -> str:
    """Return what is wrong with the bytes of an HDF5 file, or nothing."""
    if content[:8] != SIGNATURE or len(content) < 48 or content[8] > 3:
        return "its signature is missing"
    sizes = content[13:15] if content[8] < 2 else content[9:11]
    if sizes != b"\x08\x08":
        return "its addresses and lengths do not have 8 bytes"
    for start in _places(content, b"GCOL"):
        if not _heap_ends(content, start):
            return f"the heap at byte {start} has an entry that leads nowhere"
    for match in NAMES.finditer(content):
        if any(length > len(content) for length in _claimed(content, match.start(), match.end())):
            return f"the attribute at byte {match.start()} claims a text that is longer than the file"
    return ""


def _places(content: bytes, word: bytes) -> Iterator[int]:
    start = content.find(word)
    while start >= 0:
        yield start
        start = content.find(word, start + 1)


def _number(content: bytes, start: int, size: int) -> int:
    return int.from_bytes(content[start : start + size], "little")


def _heap_ends(content: bytes, start: int) -> bool:
    """Tell whether the entries of a heap, one after the other, come to its end."""
    here, stop = start + 16, start + _number(content, start + 8, 8)
    while here + 16 <= min(stop, len(content)):
        size, free = _number(content, here + 8, 8), _number(content, here, 2) == 0
        step = size if free else 16 + -(-size // 8) * 8
        if step < 16 or here + step > stop:
            return False
        here += step
    return True


def _claimed(content: bytes, start: int, stop: int) -> Iterator[int]:
    """Yield the lengths of the texts of the attribute whose name is at [start, stop), if that is one."""
    for version, before, unit in ((1, 8, 8), (2, 8, 1), (3, 9, 1)):
        head = start - before
        lengths = [_number(content, head + i, 2) for i in (2, 4, 6)]  # of the name, the type and the shape
        if head < 0 or _number(content, head, 1) != version or lengths[0] != stop - start:
            continue
        name, kind, shape = (-(-length // unit) * unit for length in lengths)
        if _number(content, start + name, 1) & 15 == VARIABLE:
            first = start + name + kind + shape
            count = _count(content, start + name + kind)
            for place in range(first, min(first + count * TEXT, len(content)), TEXT):
                yield _number(content, place, 4)


def _count(content: bytes, start: int) -> int:
    """Return how many entries a stored shape has."""
    rank, sizes = _number(content, start + 1, 1), start + (8 if _number(content, start, 1) == 1 else 4)
    return math.prod(_number(content, sizes + 8 * i, 8) for i in range(rank))

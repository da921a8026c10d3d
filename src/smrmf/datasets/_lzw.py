"""Files packed by the Unix program compress, which no module of the standard library reads."""

from __future__ import annotations

MAGIC = b"\x1f\x9d"
CLEAR = 256


def uncompress(packed: bytes) -> bytes:
    """Return the content of a .Z file.

    A code stands for a string seen before; every code but the first adds one string: the previous one and
    the first byte of the present one. Codes grow from 9 bits to a limit that the header states. They come in
    groups of eight, and where the width changes the rest of the group is padding.

    Examples
    --------
    >>> uncompress(bytes.fromhex("1f9d90 61c48c093806"))
    b'abcabc'
    """
    if packed[:2] != MAGIC or len(packed) < 3:
        raise ValueError("this is not a file of the program compress")
    limit, has_clear = packed[2] & 31, bool(packed[2] & 128)
    if not 10 <= limit <= 16:  # files of nine bits follow another rule and are never met
        raise ValueError(f"codes of up to {limit} bits are not read here")
    roots = [bytes([value]) for value in range(256)] + [b""] * has_clear
    known, width, previous = list(roots), 9, b""
    content, position = bytearray(), 3
    while position < len(packed):
        group = int.from_bytes(packed[position : position + width], "little")
        n_codes = min(8, (len(packed) - position) * 8 // width)
        position += width
        mask = (1 << width) - 1
        for _ in range(n_codes):
            code = group & mask
            group >>= width
            if code == CLEAR and has_clear:
                known, width, previous = list(roots), 9, b""
                break
            if code < len(known):
                present = known[code]
            elif code == len(known) and previous:  # the string that this very code adds
                present = previous + previous[:1]
            else:
                raise ValueError("the compressed file is damaged")
            content += present
            if previous and len(known) < 1 << limit:
                known.append(previous + present[:1])
            previous = present
            if len(known) > mask and width < limit:
                width += 1
                break
    return bytes(content)

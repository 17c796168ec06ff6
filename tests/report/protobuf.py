"""The wire format of protocol buffers, read: what the tests of profiles and traces decode with."""
import collections


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def message(data):
    """Field number -> the list of its values: integers, or bytes; empty for a field that is not there."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 in (1, 2):
            length, at = (8, at) if tag & 7 == 1 else varint(data, at)
            assert at + length <= len(data), "a field is longer than its message"
            value, at = data[at:at + length], at + length
            value = int.from_bytes(value, "little") if tag & 7 == 1 else value
        else:
            raise AssertionError("wire type %d" % (tag & 7))
        found[tag >> 3].append(value)
    return found


def packed(chunks):
    numbers = []
    for chunk in chunks:
        at = 0
        while at < len(chunk):
            value, at = varint(chunk, at)
            numbers.append(value)
    return numbers

"""Reads Parquet files as their specification says, by itself: what perfkit writes is compared with what is in a
capture, value by value, on any machine. Only the part of the format that perfkit says it writes; anything else fails.
"""
import struct

PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
INT64, DOUBLE, BYTE_ARRAY = 2, 5, 6


class Thrift:
    """The compact protocol: structures as {field: value}, lists as lists."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            length = self.varint()
            self.at += length
            return self.data[self.at - length:self.at]
        if kind == 9:
            head = self.byte()
            count = head >> 4
            if count == 15:
                count = self.varint()
            return [self.value(head & 15) for _ in range(count)]
        assert kind == 12, kind
        return self.structure()

    def structure(self):
        fields, field = {}, 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            field = field + (head >> 4) if head >> 4 else self.zigzag()
            assert field not in fields
            fields[field] = self.value(head & 15)


def hybrid(data, at, end, width, count):
    """Runs and packed groups; `count` numbers."""
    out = []
    reader = Thrift(data, at)
    while len(out) < count:
        head = reader.varint()
        if head & 1:
            for _ in range(head >> 1):
                bits = int.from_bytes(data[reader.at:reader.at + width], "little")
                out += [bits >> i & (1 << width) - 1 for i in range(0, 8 * width, width)]
                reader.at += width
        else:
            bytes_ = (width + 7) // 8
            out += [int.from_bytes(data[reader.at:reader.at + bytes_], "little")] * (head >> 1)
            reader.at += bytes_
            assert len(out) <= count
    assert reader.at == end, (reader.at, end)
    return out[:count]


def plain(data, at, end, kind, count):
    if kind in (INT64, DOUBLE):
        assert end - at == 8 * count
        return list(struct.unpack_from(f"<{count}{'q' if kind == INT64 else 'd'}", data, at))
    out = []
    for _ in range(count):
        length, = struct.unpack_from("<I", data, at)
        out.append(bytes(data[at + 4:at + 4 + length]))
        at += 4 + length
    assert at == end
    return out


class File:
    """columns: names; kinds: {name: (physical type, required, is text)}; groups: rows of each row group."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        assert self.data[:4] == self.data[-4:] == b"PAR1", path
        length, = struct.unpack("<I", self.data[-8:-4])
        start = len(self.data) - 8 - length
        reader = Thrift(self.data, start)
        self.footer = reader.structure()
        assert reader.at == start + length
        root, *leaves = self.footer[2]
        assert root[5] == len(leaves) == len(self.footer[7])
        self.columns = [leaf[4].decode() for leaf in leaves]
        self.kinds = {leaf[4].decode(): (leaf[1], leaf[3] == 0, leaf.get(6) == 0 and leaf.get(10) == {1: {}}) for leaf in leaves}
        self.groups = [group[3] for group in self.footer[4]]
        assert sum(self.groups) == self.footer[3]

    def rows(self):
        for group in self.footer[4]:
            columns = [self.column(name, chunk, group[3]) for name, chunk in zip(self.columns, group[1])]
            assert sum(chunk[3][7] for chunk in group[1]) == group[6] == group[2]
            yield from zip(*columns)

    def column(self, name, chunk, rows):
        meta = chunk[3]
        kind, required, is_text = self.kinds[name]
        assert meta[1] == kind and meta[3] == [name.encode()] and meta[4] == 0 and meta[5] == rows
        at, dictionary = meta.get(11, meta[9]), None
        end = at + meta[7]
        if 11 in meta:
            header = Thrift(self.data, at)
            page = header.structure()
            assert page[1] == 2 and page[2] == page[3]
            dictionary = plain(self.data, header.at, header.at + page[3], kind, page[7][1])
            at = header.at + page[3]
        assert at == meta[9]
        header = Thrift(self.data, at)
        page = header.structure()
        assert page[1] == 0 and page[5][1] == rows and header.at + page[3] == end
        encoding = page[5][2]
        assert encoding in meta[2]
        at = header.at
        levels = [1] * rows
        if not required:
            length, = struct.unpack_from("<I", self.data, at)
            levels = hybrid(self.data, at + 4, at + 4 + length, 1, rows)
            at += 4 + length
        count = sum(levels)
        if encoding == RLE_DICTIONARY:
            indices = hybrid(self.data, at + 1, end, self.data[at], count) if count else []
            values = [dictionary[i] for i in indices]
        else:
            values = plain(self.data, at, end, kind, count)
        self.check_statistics(meta.get(12, {}), kind, values, rows)
        if is_text:
            values = [value.decode("utf-8") for value in values]
        values = iter(values)
        return [next(values) if level else None for level in levels]

    @staticmethod
    def check_statistics(statistics, kind, values, rows):
        assert statistics[3] == rows - len(values)
        if 5 in statistics:
            least, most = statistics[6], statistics[5]
            if kind != BYTE_ARRAY:
                code = "<q" if kind == INT64 else "<d"
                least, most = struct.unpack(code, least)[0], struct.unpack(code, most)[0]
            assert least == min(values) and most == max(values)
        elif kind == INT64:
            assert not values

"""Writes dumps of CUPTI's buffers: scripted ones for the tests, and cut ones (cut_dump.py)."""
import struct

from dump_reader import (BUFFER, CALLBACK, DROPPED, END, FLUSH, KINDS, POINTER, RESOURCE_DOMAIN,
                         SIZE, STRING, Dump)

SIZES = {1: 96, 2: 88, 4: 40, 5: 40, 8: 184, 9: 32, 10: 216, 17: 56, 22: 96, 25: 104, 36: 56,
         37: 24, 38: 56, 49: 128, 50: 80, 51: 56, 52: 72}  # of CUPTI 13.0
MS = 1_000_000


def block(type, time, body=b""):
    return struct.pack("<IIQ", type, len(body), time) + body + bytes(-len(body) % 8)


def header(cupti_version, pid, monotonic, realtime):
    return b"PFKCUPT\n" + struct.pack("<4I2Q", 1, 40, cupti_version, pid, monotonic, realtime)


class Script:
    """A program on one device, told record by record. Time goes on with every step."""

    CALLS = {"cudaLaunchKernel": (5, 211), "cudaMemcpy": (5, 31), "cudaMemcpyAsync": (5, 41),
             "cudaMemset": (5, 49), "cudaMalloc": (5, 20), "cudaFree": (5, 22),
             "cudaDeviceSynchronize": (5, 165), "cudaStreamSynchronize": (5, 131),
             "cudaGraphLaunch": (5, 311), "cudaMemPoolCreate": (5, 383), "cudaGraphInstantiate": (5, 310),
             "cuLaunchKernel": (4, 307), "cuModuleLoadData": (4, 19),
             "cuModuleUnload": (4, 22)}

    def __init__(self, cupti_version=130001, pid=4000, start=5_000_000_000_000):
        self.pid, self.now, self.next_id = pid, start, 1
        self.parts = [header(cupti_version, pid, start, start + 10 ** 18)]
        self.told, self.texts, self.pending = set(), {}, {}
        self.record(8, ordinal=0, name="NVIDIA Script 9000")
        self.record(9, context=1, device=0, null_stream=7)

    def step(self, ns=1000):
        self.now += ns
        return self.now

    def text(self, text, address=None):
        """The address of a text; another one under the same address replaces it."""
        if address is None:
            address = self.texts.setdefault(text, 0x7000_0000 + 64 * len(self.texts))
        raw = text.encode("utf-8", "surrogateescape")
        if (address, raw) not in self.told:
            self.told = {one for one in self.told
                         if not (isinstance(one, tuple) and one[0] == address)} | {(address, raw)}
            self.parts.append(block(STRING, self.now, struct.pack("<Q", address) + raw))
        return address

    def record(self, kind, owner=None, **fields):
        """A record of CUPTI's into the buffer of the thread `owner`."""
        raw = bytearray(SIZES[kind])
        struct.pack_into("<I", raw, 0, kind)
        layout = KINDS[kind][1]
        for name, value in fields.items():
            offset, form = layout[name]
            if form == POINTER:
                value, form = self.text(value) if isinstance(value, str) else value, "Q"
            struct.pack_into("<" + form, raw, offset,
                             *(value if isinstance(value, tuple) else (value,)))
        if kind not in self.told:
            self.told.add(kind)
            self.parts.append(block(SIZE, self.now, struct.pack("<II", kind, SIZES[kind])))
        self.pending.setdefault(owner or self.pid, bytearray()).extend(raw)

    def call(self, name, thread=None, result=0, id=None, ns=3000, inside=None):
        """An API call that takes `ns`; `inside` is called in its middle. Returns its id."""
        kind, cbid = self.CALLS[name]
        if id is None:
            id, self.next_id = self.next_id, self.next_id + 1
        start = self.step()
        if inside:
            self.step()
            inside(id)
        self.record(kind, thread, cbid=cbid, start=start, end=self.step(ns), process=self.pid,
                    thread=thread or self.pid, correlation=id, result=result)
        return id

    def kernel(self, name, id, thread=None, stream=7, ns=5000, **more):
        start = self.step()
        self.record(10, thread, start=start, end=self.step(ns), context=1, stream=stream,
                    correlation=id, name=name, registers=32, grid=(8, 1, 1), block=(128, 1, 1),
                    **more)

    def launch(self, name, thread=None, stream=7, api="cudaLaunchKernel"):
        self.kernel(name, self.call(api, thread), thread, stream)

    def copy(self, bytes, kind=1, source=2, target=3, thread=None, api="cudaMemcpyAsync"):
        id = self.call(api, thread)
        start = self.step()
        self.record(1, thread, copy_kind=kind, source=source, target=target, bytes=bytes,
                    start=start, end=self.step(2000), context=1, stream=7, correlation=id,
                    flags=1)

    def fill(self, bytes, thread=None):
        id = self.call("cudaMemset", thread)
        start = self.step()
        self.record(2, thread, value=0xab, bytes=bytes, start=start, end=self.step(900), context=1,
                    stream=7, correlation=id, memory_kind=3)

    def allocate(self, address, bytes, thread=None):
        self.call("cudaMalloc", thread, inside=lambda id: self.record(
            49, thread, operation=1, memory_kind=3, correlation=id, address=address, bytes=bytes,
            time=self.now, context=1))

    def free(self, address, bytes, thread=None):
        self.call("cudaFree", thread, inside=lambda id: self.record(
            49, thread, operation=2, memory_kind=3, correlation=id, address=address, bytes=bytes,
            time=self.now, context=1))

    def synchronise(self, thread=None):
        def wait(id):
            start = self.now
            self.record(38, thread, type=4, start=start, end=self.step(2000), correlation=id,
                        context=1, stream=0xffffffff, event=0xffffffff)
        self.call("cudaDeviceSynchronize", thread, inside=wait)

    def callback(self, cbid, thread=None, domain=RESOURCE_DOMAIN, site=0, correlation=0, context=0,
                 stream=0, graph=0, node=0, original=0, node_type=0, handle=0):
        body = struct.pack("<8I2Q2IQ", domain, cbid, thread or self.pid, site, correlation, context,
                           stream, graph, node, original, node_type, 0, handle)
        self.parts.append(block(CALLBACK, self.step(10), body))

    def give(self, thread=None):
        """CUPTI brings buffers back: one thread's, or all, as a flush does."""
        for owner in [thread] if thread else list(self.pending):
            raw = self.pending.pop(owner, None)
            if raw:
                self.parts.append(block(BUFFER, self.step(), struct.pack("<II", owner, owner) + raw))

    def flush(self, forced=False):
        self.parts.append(block(FLUSH, self.step(), struct.pack("<IIQQ", forced, 0, self.now +
                                                                10 ** 18, 0)))
        self.give()

    def lose(self, count):
        self.parts.append(block(DROPPED, self.step(), struct.pack("<QII", count, 0, 0)))

    def finish(self):
        self.flush(True)
        self.parts.append(block(END, self.step()))
        return b"".join(self.parts)

    def dump(self):
        return Dump(self.finish())

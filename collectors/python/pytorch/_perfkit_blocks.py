"""What PyTorch's caching allocator does inside the memory that it holds, by its own history: every
block with the Python frames that allocated it. Switched on when the program itself initialises CUDA,
written when it ends, into the run's spool folder (libprof/store/ingest_memory.c reads it):

    perfkit-blocks 1 PID
    F ID LINE FILE<TAB>FUNCTION    a frame
    S ID FRAME,FRAME,...           a stack, innermost first
    A DEVICE US ADDRESS BYTES ID   a block is handed out; ID 0 = no stack
    D DEVICE US ADDRESS            and given back; what the program has freed and another stream
                                   still uses (record_stream) at the end: when it was freed

Times are microseconds since 1970, addresses decimal. Never an exception into the program."""
import atexit
import os

MOST = 1000000  # events kept; PyTorch forgets the oldest
DEPTH = 40      # frames of a stack, innermost


class _Writer:
    def __init__(self, out):
        self.out = out
        self.frames = {}
        self.stacks = {}
        self.freed = {}  # (device, address) -> time: freed by the program, still used by a stream

    @staticmethod
    def clean(text):
        return str(text).replace("\t", " ").replace("\n", " ").replace("\r", " ")

    def frame(self, frame):
        key = (frame.get("filename", ""), frame.get("line", 0), frame.get("name", ""))
        known = self.frames.get(key)
        if known is None:
            known = self.frames[key] = len(self.frames) + 1
            self.out.write("F %d %d %s\t%s\n" % (known, max(int(key[1]), 0), self.clean(key[0]),
                                                 self.clean(key[2])))
        return known

    def stack(self, frames):
        if not frames:
            return 0
        key = tuple(self.frame(frame) for frame in frames[:DEPTH])
        known = self.stacks.get(key)
        if known is None:
            known = self.stacks[key] = len(self.stacks) + 1
            self.out.write("S %d %s\n" % (known, ",".join(map(str, key))))
        return known

    def event(self, device, entry):
        action, time = entry.get("action"), entry.get("time_us")
        if time is None or action not in ("alloc", "free_requested", "free_completed"):
            return
        if action == "free_requested":
            self.freed[device, entry["addr"]] = time
            return
        self.freed.pop((device, entry["addr"]), None)
        if action == "alloc":
            stack = self.stack(entry.get("frames"))
            self.out.write("A %d %d %d %d %d\n" % (device, time, entry["addr"], entry["size"], stack))
        else:
            self.out.write("D %d %d %d\n" % (device, time, entry["addr"]))

    def end(self):
        for (device, address), time in self.freed.items():
            self.out.write("D %d %d %d\n" % (device, time, address))


def write(snapshot, path):
    """The history in a snapshot of torch.cuda.memory._snapshot()."""
    unfinished = path + ".tmp"
    with open(unfinished, "w", encoding="utf-8", errors="replace") as out:
        out.write("perfkit-blocks 1 %d\n" % os.getpid())
        writer = _Writer(out)
        for device, entries in enumerate(snapshot.get("device_traces", [])):
            for entry in entries:
                writer.event(device, entry)
        writer.end()
    os.rename(unfinished, path)


def start(torch):
    """Before CUDA is initialised, in the process that imports torch and in those that it forks."""
    memory = torch.cuda.memory
    recording = []  # the pid that records

    def begin():
        try:
            if os.environ.get("PERFKIT_DIR"):
                memory._record_memory_history(enabled="all", context="alloc", stacks="python",
                                              max_entries=MOST)
                recording[:] = [os.getpid()]
        except Exception:
            pass

    def end():
        try:
            if recording == [os.getpid()]:
                folder = os.environ["PERFKIT_DIR"]
                write(memory._snapshot(), os.path.join(folder, "%d.blocks" % os.getpid()))
        except Exception:
            pass

    torch.cuda._lazy_call(begin)
    atexit.register(end)

"""Read perfkit captures: perfkit.open("train.sqlite").kernels().

Rows come as NumPy structured arrays where NumPy is installed, else as lists of dicts. Times are nanoseconds since the start
of the capture. Nothing is compiled: libprof.so.0 is loaded with ctypes, from PERFKIT_LIBPROF, from beside this package, or from
where the system looks. The interface of that library is libprof/libprof.map; of this package, what __all__ names.

    with perfkit.open("train.sqlite") as capture:
        slow = capture.sql("SELECT number, duration_ns FROM iterations WHERE slow")
        frame = capture.pandas("kernels")
"""
import collections
import contextlib
import ctypes
import os
import shutil
import subprocess
import threading

try:
    import numpy
except ImportError:
    numpy = None

__all__ = ["open", "Capture", "Error", "EVENT_KINDS", "UNKNOWN", "annotate", "record"]

#: A whole number that is not known (NULL), in arrays: they have no None.
UNKNOWN = -(1 << 63)
_INT, _REAL, _TEXT = 1, 2, 3


class Error(Exception):
    """What libprof says is wrong, a sentence. `status`: its code (prof_status)."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 512)]


class _Array(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("integers", ctypes.POINTER(ctypes.c_int64)), ("reals", ctypes.POINTER(ctypes.c_double)),
                ("texts", ctypes.c_void_p), ("lengths", ctypes.POINTER(ctypes.c_int64)), ("text_count", ctypes.c_size_t)]


class _Arrays(ctypes.Structure):
    _fields_ = [("columns", ctypes.POINTER(_Array)), ("column_count", ctypes.c_size_t), ("rows", ctypes.c_size_t)]


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("PERFKIT_LIBPROF")]
    for up in ("../../..", "../../../.."): # lib/python3/dist-packages/perfkit, and with lib/x86_64-linux-gnu beside it
        folder = os.path.join(here, up)
        if os.path.isdir(folder):
            places += [os.path.join(folder, "libprof.so.0")]
            places += sorted(os.path.join(folder, name, "libprof.so.0") for name in os.listdir(folder) if name.endswith("-linux-gnu"))
    for place in [p for p in places if p and os.path.exists(p)] + ["libprof.so.0"]:
        try:
            library = ctypes.CDLL(place)
            break
        except OSError as error:
            reason = error
    else:
        raise ImportError(f"perfkit: cannot load libprof.so.0 ({reason}): install perfkit, or name the file in PERFKIT_LIBPROF")
    pointer, error = ctypes.c_void_p, ctypes.POINTER(_Error)
    for name, result, *arguments in (
            ("prof_open", ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(pointer), error), ("prof_refresh", ctypes.c_int, pointer, error),
            ("prof_close", None, pointer), ("prof_sql_close", None, pointer),
            ("prof_sql_open", ctypes.c_int, pointer, ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(pointer), error),
            ("prof_sql_name", ctypes.c_char_p, pointer, ctypes.c_size_t),
            ("prof_sql_arrays", ctypes.c_int, pointer, ctypes.c_size_t, ctypes.POINTER(_Arrays), error),
            ("prof_sql_arrays_free", None, ctypes.POINTER(_Arrays)), ("prof_annotate_push", None, ctypes.c_char_p), ("prof_annotate_pop", None)):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = None


def _prof():
    global _library
    if _library is None:
        _library = _load()
    return _library


def _check(status, error):
    if status:
        raise Error(status, error.message.decode("utf-8", "replace"))


def _texts(column):
    """The different texts of a column; names of programs may be any bytes."""
    data, at, texts = (ctypes.string_at(column.texts, sum(column.lengths[:column.text_count])) if column.text_count else b""), 0, []
    for length in column.lengths[:column.text_count]:
        texts.append(data[at:at + length].decode("utf-8", "backslashreplace"))
        at += length
    return texts


class _Result:
    """What libprof allocated for a query: arrays of NumPy on it are not copies, and keep it."""

    def __init__(self):
        self.arrays, self.free = _Arrays(), _prof().prof_sql_arrays_free # at the end of Python there are no globals

    def __del__(self):
        self.free(self.arrays)

    def numbers(self, pointer):
        rows = self.arrays.rows
        if numpy is None or not rows:
            return pointer[:rows] if numpy is None else numpy.empty(0, pointer._type_)
        memory = (pointer._type_ * rows).from_address(ctypes.addressof(pointer.contents))
        memory.owner = self
        return numpy.frombuffer(memory, pointer._type_)


_Column = collections.namedtuple("_Column", "kind values texts")


class Capture:
    """An open capture. Threads that use it wait for each other; close it, or use it in a with statement."""

    def __init__(self, path):
        self._handle, self._lock = ctypes.c_void_p(), threading.Lock()
        error = _Error()
        _check(_prof().prof_open(os.fsencode(path), ctypes.byref(self._handle), ctypes.byref(error)), error)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if _library is not None and getattr(self, "_handle", None):
            self.close()

    def close(self):
        with self._lock:
            if self._handle:
                _prof().prof_close(self._handle)
                self._handle = ctypes.c_void_p()

    def refresh(self):
        """Of a capture that is being recorded: look at what has come since."""
        error = _Error()
        with self._lock:
            _check(_prof().prof_refresh(self._open(), ctypes.byref(error)), error)

    def _open(self):
        if not self._handle:
            raise ValueError("the capture is closed")
        return self._handle

    def _columns(self, query, timeout, limit):
        """Name -> _Column: values are numbers or, of texts, indices into `texts` (-1 = NULL)."""
        with self._lock:
            return self._columns_alone(query, timeout, limit)

    def _columns_alone(self, query, timeout, limit):
        prof, statement, error, kept = _prof(), ctypes.c_void_p(), _Error(), _Result()
        result = kept.arrays
        nanoseconds = int(timeout * 1e9) if timeout else 0
        if "\0" in query:
            raise ValueError("a query has no NUL")
        _check(prof.prof_sql_open(self._open(), query.encode(), nanoseconds, ctypes.byref(statement), ctypes.byref(error)), error)
        try:
            _check(prof.prof_sql_arrays(statement, limit if limit is not None else ctypes.c_size_t(-1).value, ctypes.byref(result),
                                        ctypes.byref(error)), error)
            columns = {}
            for i in range(result.column_count):
                column, name, number = result.columns[i], prof.prof_sql_name(statement, i).decode("utf-8", "backslashreplace"), 2
                given = name
                while name in columns:
                    name, number = f"{given}_{number}", number + 1
                columns[name] = _Column(column.kind, kept.numbers(column.reals if column.kind == _REAL else column.integers),
                                        _texts(column) if column.kind == _TEXT else None)
            return columns
        finally:
            prof.prof_sql_close(statement)

    def sql(self, query, timeout=None, limit=None):
        """Rows of a SELECT on the views and tables of the capture (docs/reference/format.md). timeout: seconds; limit: rows."""
        return _rows(self._columns(query, timeout, limit))

    def kernels(self):
        """Kernel executions; each method below: the view, or table, of its name, in order of start."""
        return self.sql("SELECT * FROM kernels ORDER BY start_ns")

    def transfers(self):
        return self.sql("SELECT * FROM transfers ORDER BY start_ns")

    def calls(self):
        return self.sql("SELECT * FROM calls ORDER BY start_ns")

    def synchronizations(self):
        return self.sql("SELECT * FROM synchronizations ORDER BY start_ns")

    def ranges(self):
        return self.sql("SELECT * FROM ranges ORDER BY start_ns")

    def allocations(self):
        return self.sql("SELECT * FROM allocations ORDER BY start_ns")

    def iterations(self):
        return self.sql("SELECT * FROM iterations")

    def findings(self):
        return self.sql("SELECT * FROM findings")

    def events(self):
        """All device work and API calls, in order of start, for bulk work: numbers only. `kind` is an index into perfkit.EVENT_KINDS,
        `name` one into names(); `id` is the row of the event's table, `stream` and `thread` are rows of theirs."""
        columns = self._columns(_EVENTS, None, None)
        if numpy is None:
            return sorted(_rows(columns), key=lambda row: row["start_ns"])
        order = numpy.argsort(columns["start_ns"].values, kind="stable")
        array = numpy.empty(len(order), [(name, "i1" if name == "kind" else "i8") for name in columns])
        for name, column in columns.items():
            array[name] = column.values[order]
        return array

    def names(self):
        """Texts by the numbers that events() has: names()[events["name"]] with NumPy. None at 0 and where no name is known."""
        columns = self._columns("SELECT id, value FROM string", None, None)
        size = 1 + max(columns["id"].values, default=0)
        texts = [None] * int(size) if numpy is None else numpy.full(size, None, object)
        for number, text in zip(columns["id"].values, _cells(columns["value"])):
            texts[number] = text
        return texts

    def pandas(self, query):
        """A DataFrame of a SELECT, or of a view by its name: column by column, texts as categories, NULL as <NA>."""
        import pandas
        columns = {}
        for name, column in self._columns(_select(query), None, None).items():
            if column.kind == _TEXT:
                columns[name] = pandas.Categorical.from_codes(column.values, column.texts)
            elif column.kind == _INT and (column.values == UNKNOWN).any():
                columns[name] = pandas.arrays.IntegerArray(column.values, column.values == UNKNOWN)
            else:
                columns[name] = column.values
        return pandas.DataFrame(columns, copy=False)

    def polars(self, query):
        """As pandas(), a polars.DataFrame."""
        import polars
        return polars.from_pandas(self.pandas(query))


EVENT_KINDS = ("kernel", "transfer", "memset", "call")
_CALLED = " UNION ALL SELECT 3, id, start - api_lead, api_duration, api_name, 0, thread FROM {0} WHERE start - api_lead NOT NULL AND api_name NOT NULL"
_EVENTS = """SELECT 0 AS kind, k.id, k.start AS start_ns, k.duration AS duration_ns, coalesce(c.demangled, c.name) AS name, k.stream, k.thread
FROM kernel k JOIN launch_config c ON c.id = k.config WHERE k.start NOT NULL
UNION ALL SELECT 1, id, start, duration, 0, stream, thread FROM transfer WHERE start NOT NULL
UNION ALL SELECT 2, id, start, duration, 0, stream, thread FROM memset WHERE start NOT NULL
UNION ALL SELECT 3, id, start, duration, name, 0, thread FROM api_call""" + "".join(map(_CALLED.format, ("kernel", "transfer", "memset", "sync")))


def _select(query):
    return query if " " in query.strip() else f'SELECT * FROM "{query.strip()}"'


def _cells(column):
    """A column as a list, or an array of objects."""
    if column.kind != _TEXT:
        return column.values if numpy is not None or column.kind != _INT else [None if v == UNKNOWN else v for v in column.values]
    texts = [*column.texts, None]
    if numpy is None:
        return [texts[code] for code in column.values]
    return numpy.array(texts, object)[column.values]


def _rows(columns):
    if numpy is None:
        return [dict(zip(columns, row)) for row in zip(*map(_cells, columns.values()))]
    cells = {name: _cells(column) for name, column in columns.items()}
    rows = len(next(iter(cells.values()), ()))
    array = numpy.empty(rows, [(name, values.dtype) for name, values in cells.items()])
    for name, values in cells.items():
        array[name] = values
    return array


def open(path): # noqa: A001 - perfkit.open(), as gzip.open()
    """Open a capture, also one that is being recorded. Error: no such file, no capture, or damaged."""
    return Capture(path)


def _program():
    """The command perfkit: named in PERFKIT, on the PATH, or installed beside this package. None: there is none."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../bin/perfkit")
    return shutil.which(os.environ.get("PERFKIT") or "perfkit") or shutil.which(beside)


@contextlib.contextmanager
def annotate(name):
    """An NVTX range around the block: iterations of a loop are found by it. Costs a microsecond where nobody records."""
    _prof().prof_annotate_push(name.encode("utf-8", "backslashreplace"))
    try:
        yield
    finally:
        _prof().prof_annotate_pop()


class _Recording:
    """Blocks of record() that are open, within each other or in several threads: recorded until the last one ends."""
    lock, blocks, started = threading.Lock(), 0, False


@contextlib.contextmanager
def record(name=None):
    """Record this block, in a program under perfkit run --dormant; does nothing where nobody records. name: also a range of this name."""
    def control(verb):
        """Until every process has followed: after 3 s of waiting for one, perfkit ctl says so and ends."""
        for _ in range(4 if program else 0):
            done = subprocess.run([program, "ctl", verb, str(os.getpid())], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            if done.returncode or not done.stderr:
                return done.returncode == 0
        return bool(program)
    program = _program() if os.environ.get("PERFKIT_DIR") else None
    with _Recording.lock:
        if not _Recording.blocks:
            _Recording.started = control("start")
        _Recording.blocks += 1
        started = _Recording.started
    try:
        with annotate(name) if name else contextlib.nullcontext():
            yield started
    finally:
        with _Recording.lock:
            _Recording.blocks -= 1
            if started and not _Recording.blocks:
                control("stop")

"""What `perfkit run --pytorch` switches on in a program that imports torch: a range for every
operator, one for every call of an nn.Module, named by its path in the model, one while torch.compile
compiles, and one for every garbage collection of Python. The program's code stays as it is.

Operators and modules are recorded by perfkit's library (collectors/nvtx/pytorch.c). Where that does
not know this PyTorch or Python, by PyTorch's NVTX ranges (the state behind
torch.autograd.profiler.emit_nvtx) and by hooks of modules, which cost several times as much.

Rules: never an exception into the program, no CUDA call (a process that forks later must not have
initialised CUDA), and whoever profiles with torch.profiler gets it: ours makes way meanwhile."""
import atexit
import functools
import os
import sys
import threading
import types
import weakref

import _perfkit_pytorch

_keep = []  # what must live as long as the process


def _library():
    from ctypes import PyDLL, c_char_p, c_size_t, c_void_p, py_object
    library = PyDLL(os.environ["NVTX_INJECTION64_PATH"])
    library.perfkit_pytorch_modules.argtypes = [py_object, c_size_t, py_object, py_object]
    library.perfkit_pytorch_module.argtypes = [c_void_p, c_char_p]
    library.perfkit_pytorch_module.restype = None
    library.perfkit_pytorch_compiles.restype = None
    return library


# ---- garbage collections -------------------------------------------------------------------------


def _collections(library):
    """By a function without code of Python: torch.compile looks at all that is run."""
    import gc
    from ctypes import py_object
    collects = library.perfkit_python_collects
    if not collects(None, None):
        return
    collects.argtypes = [py_object, py_object]

    def end():
        if collects in gc.callbacks:
            gc.callbacks.remove(collects)
    gc.callbacks.append(collects)
    atexit.register(end)


# ---- compilations --------------------------------------------------------------------------------


def _compilations(library):
    """By the callbacks that torch._dynamo has for it, once the program imports that. Its reset() forgets
    them."""
    def begins(*_):
        library.perfkit_pytorch_compiles(1)

    def ends(*_):
        library.perfkit_pytorch_compiles(0)

    def watch(dynamo):
        handler = dynamo.callback_handler
        forget = handler.clear

        def register():
            handler.register_start_callback(begins)
            handler.register_end_callback(ends)

        @functools.wraps(forget)
        def clear():
            forget()
            register()
        register()
        handler.clear = clear
    _perfkit_pytorch.await_import("torch._dynamo.callback", watch)


# ---- operators -----------------------------------------------------------------------------------


class _State:
    """A thread's: kept in its locals, which end with the thread, on it."""

    def __init__(self, disable):
        self.disable, self.thread = disable, threading.get_ident()
        self.now = None  # "on", "waiting" for the program's own profiler, "ended", "failed"

    def off(self):
        if self.now == "on":
            self.now = "ended"
            self.disable()

    def __del__(self):
        try:
            if threading.get_ident() == self.thread:
                self.off()
        except Exception:
            pass


class _Operators:
    """PyTorch's NVTX state, which is a thread's own: on in the importing thread, in every thread that
    starts later, and in every thread that calls a module. Off again before the thread ends: PyTorch
    warns of a state that is left."""

    def __init__(self, profiler, shapes):
        self.profiler = profiler
        self.enable = profiler._enable_profiler
        self.disable = profiler._disable_profiler
        self.prepare = profiler._prepare_profiler
        self.local = threading.local()
        self.config = profiler.ProfilerConfig(
            profiler.ProfilerState.NVTX, shapes, False, False, False, False,
            profiler._ExperimentalConfig())

    def state(self):
        state = self.local.__dict__.get("state")
        if state is None:
            state = self.local.state = _State(self.disable)
        return state

    def on(self):
        state = self.state()
        if state.now is None:
            state.now = "failed"  # tried once a thread
            self.enable(self.config, set())
            state.now = "on"

    def off(self):
        self.state().off()

    def make_way(self):
        state = self.state()
        if state.now == "on":
            state.now = "waiting"
            self.disable()

    def come_back(self):
        state = self.state()
        if state.now == "waiting":
            state.now = None
            try:
                self.on()
            except Exception:
                pass

    def share(self):
        """The program's own use of the profiler, of which a thread can have one."""
        def before(function):
            @functools.wraps(function)
            def wrapped(*args, **kwargs):
                self.make_way()
                try:
                    return function(*args, **kwargs)
                except BaseException:
                    self.come_back()
                    raise
            return wrapped

        def after(function):
            @functools.wraps(function)
            def wrapped(*args, **kwargs):
                try:
                    return function(*args, **kwargs)
                finally:
                    self.come_back()
            return wrapped
        self.profiler._prepare_profiler = before(self.prepare)
        self.profiler._enable_profiler = before(self.enable)
        self.profiler._disable_profiler = after(self.disable)

    def in_new_threads(self):
        original = threading.Thread._bootstrap_inner

        @functools.wraps(original)
        def _bootstrap_inner(thread):
            try:
                self.on()
            except Exception:
                pass
            return original(thread)
        threading.Thread._bootstrap_inner = _bootstrap_inner


# ---- modules -------------------------------------------------------------------------------------


class _Modules:
    """The names of modules: CLASS.PATH, the class of the outermost module called and the path in it. A
    name once given stays."""

    def __init__(self):
        self.names = {}  # id -> (weak reference, name)
        self.tell = lambda key, name: None  # the library, a name or None: it is gone

    def remember(self, module, name):
        key = id(module)

        def forget(reference):
            if self.names.get(key, (None,))[0] is reference:
                del self.names[key]
                self.tell(key, None)
        self.names[key] = (weakref.ref(module, forget), name)
        self.tell(key, name.encode("utf-8", "replace"))
        return name

    def known(self, module):
        reference, name = self.names.get(id(module), (None, None))
        return name if reference is not None and reference() is module else None

    def name_of(self, module, outermost):
        name = self.known(module)
        if name is None:
            name = self.remember(module, type(module).__name__)
            for path, part in module.named_modules() if outermost else ():
                if self.known(part) is None:
                    self.remember(part, name + "." + path)
        return name

    def by_library(self, torch, library):
        """Are the calls recorded by the library?"""
        def name(module, outermost=None):
            self.name_of(module, outermost is not None)
        self.tell = library.perfkit_pytorch_module
        call = torch.nn.Module.__call__
        frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
        locked = "t" not in getattr(sys, "abiflags", "")  # there is a lock of the interpreter
        return locked and isinstance(call, types.FunctionType) and bool(
            library.perfkit_pytorch_modules(call, types.FunctionType.__basicsize__, name,
                                            getattr(frames, "set_eval_frame", None)))


class _Hooks(_Modules):
    """A range for every call of a module, by PyTorch's hooks."""

    def __init__(self, torch, operators):
        super().__init__()
        self.push = torch.cuda.nvtx.range_push
        self.pop = torch.cuda.nvtx.range_pop
        self.compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self.operators = operators
        self.local = threading.local()

    def begin(self, module, args):
        if self.compiling():
            return None
        try:
            if self.operators:
                self.operators.on()
            opened = self.local.__dict__.setdefault("opened", [])
            self.push(self.name_of(module, not opened))
            opened.append(module)
        except Exception:
            pass
        return None

    def end(self, module, args, result):
        """Also closes the ranges of modules inside that an exception left open."""
        if self.compiling():
            return None
        opened = self.local.__dict__.get("opened", ())
        if any(one is module for one in opened):
            while opened:
                last = opened.pop()
                self.pop()
                if last is module:
                    break
        return None

    def watch(self, module):
        module.register_module_forward_pre_hook(self.begin)
        try:
            module.register_module_forward_hook(self.end, always_call=True)
        except TypeError:  # before 2.0
            module.register_module_forward_hook(self.end)


# ---- torch is there ------------------------------------------------------------------------------


class _WithoutCuda(Exception):
    pass


def _nvtx_of(torch):
    if not hasattr(torch._C, "_nvtx"):
        raise _WithoutCuda("built without CUDA")


def _operators(torch, library, shapes):
    """How they are recorded, and what does so in each thread. The sizes of their inputs only PyTorch
    itself writes, into the names of its ranges."""
    if not shapes and library.perfkit_pytorch_operators():
        return "operators", None
    _nvtx_of(torch)
    operators = _Operators(torch.autograd.profiler, shapes)
    operators.on()
    operators.share()
    operators.in_new_threads()
    atexit.register(operators.off)
    how = "operators (by PyTorch's NVTX ranges%s)"
    return how % (", with shapes" if shapes else ""), operators


def _modules(torch, library, operators):
    modules = _Modules()
    _keep.append(modules)
    # The hooks also switch operators on in threads that nothing else sees.
    if not operators and modules.by_library(torch, library):
        return "modules"
    _nvtx_of(torch)
    hooks = _Hooks(torch, operators)
    hooks.watch(torch.nn.modules.module)
    _keep.append(hooks)
    return "modules (by PyTorch's hooks)"


def _blocks(torch):
    """Blocks of PyTorch's caching allocator, by a file beside this one."""
    blocks = _perfkit_pytorch.load("_perfkit_blocks")
    if blocks and hasattr(torch._C, "_nvtx"):
        blocks.start(torch)


def start(torch, wanted):
    library, named, missing, operators = _library(), [], [], None

    def attempt(what, function, *args):
        try:
            return function(*args)
        except _WithoutCuda:
            missing.append(what + " (built without CUDA)")
        except Exception as error:
            missing.append("%s (%s: %s)" % (what, type(error).__name__, error))
    shapes = "shapes" in wanted
    if shapes or "ops" in wanted:
        how = attempt("operators", _operators, torch, library, shapes)
        if how:
            named.append(how[0])
            operators = how[1]
    if "modules" in wanted:
        how = attempt("modules", _modules, torch, library, operators)
        if how:
            named.append(how)
    attempt("blocks of its allocator", _blocks, torch)
    attempt("garbage collections", _collections, library)
    attempt("compilations", _compilations, library)
    version = str(getattr(torch, "__version__", "of unknown version"))
    text = "PyTorch %s: %s" % (version, "not named: " + ", ".join(missing) if missing
                               else " and ".join(named) + " are named")
    library.perfkit_pytorch_note(text.encode("utf-8", "replace"), int(not missing))

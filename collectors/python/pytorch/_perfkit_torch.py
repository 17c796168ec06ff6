"""What `perfkit run --pytorch` switches on in a program that imports torch: an NVTX range for every
operator, by PyTorch's own profiler (the state behind torch.autograd.profiler.emit_nvtx), and one for
every call of an nn.Module, named by its path in the model. The program's code stays as it is.

Rules: never an exception into the program, no CUDA call (a process that forks later must not have
initialised CUDA), and whoever profiles with torch.profiler gets it: ours makes way meanwhile."""
import atexit
import functools
import os
import threading
import weakref

import _perfkit_pytorch

_keep = []  # what must live as long as the process


def _say(text, named=False):
    """A line of the capture's trust block."""
    try:
        import ctypes
        library = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
        library.perfkit_pytorch_note(text.encode("utf-8", "replace"), int(named))
    except Exception:
        pass


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

    def __init__(self, profiler):
        self.profiler = profiler
        self.enable = profiler._enable_profiler
        self.disable = profiler._disable_profiler
        self.prepare = profiler._prepare_profiler
        self.local = threading.local()
        self.config = profiler.ProfilerConfig(
            profiler.ProfilerState.NVTX, False, False, False, False, False,
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
    """A range for every call of a module: CLASS.PATH, the class of the outermost module called and
    the path in it. A name once given stays."""

    def __init__(self, torch, operators):
        self.push = torch.cuda.nvtx.range_push
        self.pop = torch.cuda.nvtx.range_pop
        self.compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self.operators = operators
        self.names = {}  # id -> (weak reference, name)
        self.local = threading.local()

    def remember(self, module, name):
        key = id(module)

        def forget(reference):
            if self.names.get(key, (None,))[0] is reference:
                del self.names[key]
        self.names[key] = (weakref.ref(module, forget), name)
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


def _operators(torch):
    operators = _Operators(torch.autograd.profiler)
    operators.on()
    operators.share()
    operators.in_new_threads()
    atexit.register(operators.off)
    return operators


def _blocks(torch):
    """Blocks of PyTorch's caching allocator, by a file beside this one."""
    blocks = _perfkit_pytorch.load("_perfkit_blocks")
    if blocks:
        blocks.start(torch)


def start(torch, wanted):
    version = str(getattr(torch, "__version__", "of unknown version"))
    if not hasattr(torch._C, "_nvtx"):
        _say("PyTorch %s is built without CUDA: its operators and modules are not named" % version)
        return
    operators, missing = None, []
    names = {"ops": "operators", "modules": "modules"}
    try:
        if "ops" in wanted:
            operators = _operators(torch)
    except Exception as error:
        missing.append("operators (%s: %s)" % (type(error).__name__, error))
    try:
        if "modules" in wanted:
            modules = _Modules(torch, operators)
            modules.watch(torch.nn.modules.module)
            _keep.append(modules)
    except Exception as error:
        missing.append("modules (%s: %s)" % (type(error).__name__, error))
    try:
        _blocks(torch)
    except Exception as error:
        missing.append("blocks of its allocator (%s: %s)" % (type(error).__name__, error))
    _say("PyTorch %s: %s" % (version, "not named: " + ", ".join(missing) if missing
                             else " and ".join(names[word] for word in names if word in wanted) +
                             " are named"), not missing)

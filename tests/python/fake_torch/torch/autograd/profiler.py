import atexit
import sys
import threading

configs = {}  # of a thread by its number, as thread-local storage of C++ outlives Python's own


def _left():
    """As PyTorch says when a thread, or the program, ends with it."""
    if configs:
        print("Warning: Leaked callback handle", file=sys.stderr)


atexit.register(_left)


class ProfilerState:
    NVTX = "NVTX"
    KINETO = "KINETO"


class _ExperimentalConfig:
    pass


class ProfilerConfig:
    def __init__(self, state, report_input_shapes, profile_memory, with_stack, with_flops,
                 with_modules, experimental_config):
        assert isinstance(experimental_config, _ExperimentalConfig)
        self.state = state
        self.shapes = report_input_shapes


def current():
    config = configs.get(threading.get_ident())
    return config if config and config.state == ProfilerState.NVTX else None


def _prepare_profiler(config, activities):
    if threading.get_ident() in configs:
        raise RuntimeError("Profiler is already enabled on this thread")


def _enable_profiler(config, activities):
    if threading.get_ident() in configs:
        raise RuntimeError("Profiler is already enabled on this thread")
    configs[threading.get_ident()] = config


def _disable_profiler():
    if threading.get_ident() not in configs:
        raise RuntimeError("Can't disable profiler when it's not running")
    del configs[threading.get_ident()]


class profile:
    """As a program uses it."""

    def __enter__(self):
        config = ProfilerConfig(ProfilerState.KINETO, False, False, False, False, False,
                                _ExperimentalConfig())
        _prepare_profiler(config, set())
        _enable_profiler(config, set())
        return self

    def __exit__(self, *error):
        _disable_profiler()


class emit_nvtx(profile):
    def __init__(self, enabled=True):
        self.enabled = enabled

    def __enter__(self):
        if not self.enabled:
            return None
        config = ProfilerConfig(ProfilerState.NVTX, False, False, False, False, False,
                                _ExperimentalConfig())
        _prepare_profiler(config, set())
        _enable_profiler(config, set())
        return self

    def __exit__(self, *error):
        if self.enabled:
            _disable_profiler()

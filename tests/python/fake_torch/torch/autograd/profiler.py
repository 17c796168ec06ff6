import threading

local = threading.local()


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


def current():
    config = getattr(local, "config", None)
    return config if config and config.state == ProfilerState.NVTX else None


def _prepare_profiler(config, activities):
    if getattr(local, "config", None):
        raise RuntimeError("Profiler is already enabled on this thread")


def _enable_profiler(config, activities):
    if getattr(local, "config", None):
        raise RuntimeError("Profiler is already enabled on this thread")
    local.config = config


def _disable_profiler():
    if not getattr(local, "config", None):
        raise RuntimeError("Can't disable profiler when it's not running")
    local.config = None


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

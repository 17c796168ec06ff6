"""Waits for `import torch` in a program under `perfkit run --pytorch`. Imports nothing that Python
itself has not imported at its start: most programs never get further than this."""
import os
import sys


def _options():
    """["ops", "modules"] as requested, or []."""
    for option in os.environ.get("PERFKIT_OPTIONS", "").split(","):
        name, _, value = option.partition("=")
        if name == "pytorch":
            return value.split("+")
    return []


def load(name):
    """A module of this folder, which is not on sys.path any more; None when it is not there."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    if not os.path.exists(path):
        return None
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location(name, path)
    module = sys.modules[name] = module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module


class _Finder:
    """First on sys.meta_path until a module is imported, which is then given to a function. Finds it as it
    would have been found."""

    def __init__(self, name, then):
        self.name = name
        self.then = then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find else None
            if spec is not None:
                self.watch(spec)
                return spec
        return None

    def watch(self, spec):
        """Run the hook after the module's own code. The loader is the module's alone (one is made for each):
        it carries the change until then, and is what it was afterwards."""
        try:
            loader, execute = spec.loader, spec.loader.exec_module

            def exec_module(module):
                if module.__name__ != self.name:
                    return execute(module)
                del loader.exec_module
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _quietly(self.then, module)
            loader.exec_module = exec_module
        except Exception:
            pass


def _quietly(function, module):
    try:
        function(module)
    except Exception:
        pass


def await_import(name, then):
    """Calls then(module) when the module has been imported."""
    if name in sys.modules:
        _quietly(then, sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def start():
    wanted = _options()
    if wanted:
        await_import("torch", lambda torch: load("_perfkit_torch").start(torch, wanted))

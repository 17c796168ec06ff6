"""Run by Python itself when it starts under `perfkit run --pytorch` (this folder is in front of
PYTHONPATH). Sets up the hook that waits for `import torch`, takes this folder off sys.path again and
hands over to the sitecustomize that the program would have had, if there is one.

Nothing here may be seen by the program: no output, no error, and as old a language as scripts that a
program may start are written in."""
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _start():
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # perfkit's folder stays as it is
    try:
        if sys.version_info >= (3, 8):
            import _perfkit_pytorch
            _perfkit_pytorch.start()
    except Exception:
        pass
    sys.dont_write_bytecode = written
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != _here]


def _hand_over():
    """Import the next sitecustomize in this one's place. None: the error that there would have been."""
    try:
        from _frozen_importlib import module_from_spec  # importlib's parts, which are loaded already
        from _frozen_importlib_external import PathFinder
    except ImportError:
        import imp
        found = imp.find_module("sitecustomize", sys.path)
        imp.load_module("sitecustomize", *found)
        return
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start()
_hand_over()

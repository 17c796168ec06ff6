import os

from torch import _C

_before, _after, _always = [], [], []


def register_module_forward_pre_hook(hook):
    _before.append(hook)


def register_module_forward_hook(hook, *, always_call=False):
    (_always if always_call else _after).append(hook)


class Module:
    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self.__dict__.setdefault("_parts", {})[name] = value
        object.__setattr__(self, name, value)

    def named_modules(self, prefix=""):
        if _C._dynamo.eval_frame.callback:
            raise SystemError("torch.compile was shown a line of perfkit's")
        yield prefix, self
        for name, part in self.__dict__.get("_parts", {}).items():
            yield from part.named_modules(prefix + "." + name if prefix else name)

    def __call__(self, *args):
        for hook in _before:
            assert hook(self, args) is None
        try:
            result = self.forward(*args)
            for hook in _after:
                assert hook(self, args, result) is None
        except BaseException:
            for hook in _always:
                hook(self, args, None)
            raise
        for hook in _always:
            assert hook(self, args, result) is None
        return result


if os.environ.get("FAKE_TORCH_HIDES"):
    class _Call:  # no function of Python's own
        def __init__(self, call):
            self.call = call

        def __get__(self, module, kind):
            return self.call.__get__(module, kind) if module is not None else self
    Module.__call__ = _Call(Module.__call__)

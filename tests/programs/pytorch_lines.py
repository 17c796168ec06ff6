"""Trains a small model and says from which lines it calls what: for --pytorch and --stacks. With
"profiler" the last steps run under the program's own torch.profiler, on the CPU."""
import inspect
import sys

from common import Counted, done, need_gpu, torch

STEPS = 8
PROFILED = 2


class Wave(torch.nn.Module):
    def forward(self, x):
        return torch.sin(x)  # here: sin


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.wave = Wave()
        self.rest = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())

    def forward(self, x):
        return self.rest(self.wave(self.first(x)))


def count(counted):
    counted.tensor.bitwise_not_()  # here: bitwise_not
    counted.launches += 1


def step(model, optimizer, counted):
    optimizer.zero_grad(set_to_none=True)
    loss = model(torch.ones(32, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    count(counted)


def lines():
    """{operator: line} of the marks in this file."""
    return {line.rpartition("# here: ")[2].strip(): number for number, line in
            enumerate(inspect.getsource(sys.modules[__name__]).splitlines(), 1) if "# here: " in line
            and "rpartition" not in line and "in line" not in line}


def main():
    need_gpu()
    torch.manual_seed(1)
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    counted, steps, events = Counted(), STEPS, None
    for _ in range(STEPS):
        step(model, optimizer, counted)
    if "profiler" in sys.argv:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            for _ in range(PROFILED):
                step(model, optimizer, counted)
        steps += PROFILED
        events = sum(event.name == "aten::sin" for event in profiler.events())
    torch.cuda.synchronize()
    done(counted=counted.launches, steps=steps, profiler_sin=events,
         launching_processes=1, lines=lines(), python=list(sys.version_info[:3]),
         torch=torch.__version__)


if __name__ == "__main__":
    main()

"""A program that profiles itself: x.add_(1) LAUNCHES times, the middle third under torch.profiler.
Says whether its own profiler saw device events."""
import sys

from common import done, need_gpu, torch

LAUNCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def launch(x, name, times):
    torch.cuda.nvtx.range_push(name)
    for _ in range(times):
        x.add_(1)
    torch.cuda.synchronize()
    torch.cuda.nvtx.range_pop()


def main():
    from torch.profiler import ProfilerActivity, profile
    need_gpu()
    x = torch.empty(1024, device="cuda")
    third = LAUNCHES // 3
    launch(x, "before", third)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        launch(x, "during", third)
    launch(x, "after", third)
    on_device = sum("CUDA" in str(event.device_type) for event in profiler.events())
    by_host = sum(event.name == "aten::add_" for event in profiler.events())
    done(kernels={"(?i)add": 3 * third}, ranges={"before": 1, "during": 1, "after": 1},
         profiler_device_events=on_device, profiler_host_events=by_host, launching_processes=1)


if __name__ == "__main__":
    main()

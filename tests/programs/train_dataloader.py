"""Trains a tiny CNN on made-up pictures that two DataLoader workers prepare: STEPS steps, each an NVTX
range "step" with "forward", "backward" and "optimizer" inside."""
import sys

from common import Counted, done, need_gpu, torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
BATCH = 16


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, i):
        random = torch.Generator().manual_seed(i)
        return torch.rand(3, 32, 32, generator=random), i % 10


def main():
    need_gpu()
    torch.manual_seed(1)
    torch.backends.cudnn.deterministic = True
    nvtx = torch.cuda.nvtx
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(), torch.nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=BATCH, num_workers=2,
                                         pin_memory=True, multiprocessing_context="fork")
    counted, steps = Counted(), 0
    for pictures, labels in loader:
        nvtx.range_push("step")
        nvtx.range_push("forward")
        loss = torch.nn.functional.cross_entropy(model(pictures.cuda(non_blocking=True)),
                                                 labels.cuda(non_blocking=True))
        nvtx.range_pop()
        nvtx.range_push("backward")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nvtx.range_pop()
        nvtx.range_push("optimizer")
        optimizer.step()
        counted.launch()
        nvtx.range_pop()
        nvtx.range_pop()
        steps += 1
    torch.cuda.synchronize()
    done(steps=steps, workers=2, counted=counted.launches, launching_processes=1,
         ranges={name: steps for name in ("step", "forward", "backward", "optimizer")})


if __name__ == "__main__":
    main()

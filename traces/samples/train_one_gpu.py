#!/usr/bin/env python3
"""Trains a ResNet-50 or a GPT-2 for a few steps on one GPU, with its gradients in buckets on a second stream.

What `weft capture` is tried on where there is one GPU: buckets of 25 MiB are filled while back-propagation runs, as
data parallelism does, and handed to NCCL, which with one rank has nothing to do. Prints the times of the steps and,
with --profile, those of the kernels as torch.profiler sees them. Needs PyTorch, and torchvision for ResNet-50.
"""
import argparse
import json
import os
import statistics

import torch
import torch.distributed as dist
import torch.nn.functional as F

BUCKET_BYTES = 25 << 20  # of DistributedDataParallel (bucket_cap_mb)


class Block(torch.nn.Module):
    """Radford et al., Language models are unsupervised multitask learners: a layer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(torch.nn.Module):
    def __init__(self, layers=12, width=768, heads=12, length=1024, words=50257):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Embedding(length, width)
        self.layers = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.words.weight.t()


def resnet50(batch):
    import torchvision

    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, optimizer, lambda: F.cross_entropy(model(images), labels)


def gpt2(batch):
    model = Gpt2().cuda()
    tokens = torch.randint(50257, (batch, 1025), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def loss():
        words = model(tokens[:, :-1])
        return F.cross_entropy(words.flatten(0, 1).float(), tokens[:, 1:].flatten())

    return model, optimizer, loss


class Buckets:
    """Gradients in the order in which they come, copied and handed to NCCL on a stream of their own."""

    def __init__(self, model):
        self.stream = torch.cuda.Stream()
        self.buckets, self.of, size = [[]], {}, 0
        for parameter in reversed(list(model.parameters())):
            if self.buckets[-1] and size + parameter.nbytes > BUCKET_BYTES:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(parameter)
            self.of[parameter] = len(self.buckets) - 1
            size += parameter.nbytes
        self.flat = [torch.empty(sum(p.numel() for p in b), device="cuda") for b in self.buckets]
        self.missing = [len(b) for b in self.buckets]
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(self.ready)

    def ready(self, parameter):
        bucket = self.of[parameter]
        self.missing[bucket] -= 1
        if self.missing[bucket]:
            return
        self.missing[bucket] = len(self.buckets[bucket])
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream), torch.cuda.nvtx.range(f"bucket {bucket}"):
            grads = [p.grad for p in self.buckets[bucket]]
            flat = self.flat[bucket]
            views = [v.view_as(g) for v, g in zip(flat.split([g.numel() for g in grads]), grads)]
            torch._foreach_copy_(views, grads)
            if dist.is_initialized():
                dist.all_reduce(flat)
            flat.div_(1)
            torch._foreach_copy_(grads, views)

    def wait(self):
        torch.cuda.current_stream().wait_stream(self.stream)


def train_step(model, optimizer, loss_of, buckets):
    with torch.cuda.nvtx.range("forward"), torch.autocast("cuda", dtype=torch.bfloat16):
        loss = loss_of()
    with torch.cuda.nvtx.range("backward"):
        loss.backward()
    with torch.cuda.nvtx.range("optimizer"):
        buckets.wait()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def timed(step, count):
    """Milliseconds of each step, the device's."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", choices=["resnet50", "gpt2"])
    options.add_argument("--batch", type=int, help="64 images or 8 sequences of 1024")
    options.add_argument("--warm-up", type=int, default=3, help="steps that are not timed")
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--profile", help="after the timed steps: three more, as torch.profiler sees them, to FILE")
    options.add_argument("--times", help="write the times as JSON")
    args = options.parse_args()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    if dist.is_nccl_available():
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29517")
        dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    model, optimizer, loss_of = resnet50(args.batch or 64) if args.model == "resnet50" else gpt2(args.batch or 8)
    buckets = Buckets(model)

    def step():
        train_step(model, optimizer, loss_of, buckets)

    for _ in range(args.warm_up):
        step()
    ms = timed(step, args.steps)
    print(f"{args.model}: {statistics.median(ms):.2f} ms a step (median of {len(ms)}, {min(ms):.2f} to {max(ms):.2f})")
    if args.profile:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        # Only with a schedule it marks the steps.
        schedule = torch.profiler.schedule(wait=0, warmup=0, active=3, repeat=1)
        with torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True) as profiler:
            for number in range(3):
                step()
                if number == 2:
                    torch.cuda.synchronize()
                profiler.step()
        profiler.export_chrome_trace(args.profile)
    if args.times:
        with open(args.times, "w") as out:
            json.dump({"model": args.model, "ms": ms}, out)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Small training loops of the kinds that people write: --kind names one."""
import argparse
import copy
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

import meter

p = argparse.ArgumentParser()
p.add_argument("--kind", required=True)
p.add_argument("--steps", type=int, default=100)
a = p.parse_args()
torch.manual_seed(0)
random.seed(0)


def convolutions(n_in, n_out, width=64, classes=None):
    layers = []
    for i in range(4):
        layers += [nn.Conv2d(n_in if i == 0 else width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    layers += [nn.Conv2d(width, n_out, 3, padding=1)]
    if classes:
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_out, classes)]
    return nn.Sequential(*layers)


def encoder(width=512, layers=6, heads=8, vocab=8192):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocab, width)
            layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, batch_first=True)
            self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, vocab)

        def forward(self, x):
            return self.head(self.body(self.embed(x)))

    return Model().cuda()


def tokens(batch, length, vocab=8192):
    return torch.randint(0, vocab, (batch, length)).cuda()


def text_loss(model, x):
    return F.cross_entropy(model(x).flatten(0, 1), x.flatten())


def gan():
    """Two optimizers that take turns."""
    g, d = convolutions(16, 3).cuda(), convolutions(3, 64, classes=1).cuda()
    og, od = torch.optim.Adam(g.parameters(), 2e-4), torch.optim.Adam(d.parameters(), 2e-4)
    for i in meter.steps(a.steps):
        real = torch.zeros(32, 3, 64, 64).cuda()
        noise = torch.randn(32, 16, 64, 64, device="cuda")
        fake = g(noise)
        od.zero_grad()
        loss = F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()
        loss.backward()
        od.step()
        if i % 2 == 0:  # the generator every other step
            og.zero_grad()
            F.softplus(-d(fake)).mean().backward()
            og.step()
        if i % 10 == 0:
            loss.item()


def ema():
    """A mean of the weights beside them; weights are never set to None."""
    m = encoder()
    mean = copy.deepcopy(m)
    o = torch.optim.AdamW(m.parameters(), 1e-4, foreach=False)
    for i in meter.steps(a.steps):
        loss = text_loss(m, tokens(8, 256))
        loss.backward()
        o.step()
        o.zero_grad(set_to_none=False)
        with torch.no_grad():
            for x, y in zip(mean.parameters(), m.parameters()):
                x.lerp_(y, 0.01)
        if i % 25 == 0:
            print(f"step {i}: {loss.item():.3f}")


class Lora(nn.Module):
    def __init__(self, inner, rank=8):
        super().__init__()
        self.inner = inner
        self.down = nn.Linear(inner.in_features, rank, bias=False)
        self.up = nn.Linear(rank, inner.out_features, bias=False)

    @property
    def weight(self):
        return self.inner.weight

    @property
    def bias(self):
        return self.inner.bias

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


def lora():
    """Small adapters on a model whose weights stand still."""
    m = encoder(width=768)
    for q in m.parameters():
        q.requires_grad = False
    for layer in m.body.layers:
        layer.linear1, layer.linear2 = Lora(layer.linear1).cuda(), Lora(layer.linear2).cuda()
    o = torch.optim.AdamW([q for q in m.parameters() if q.requires_grad], 1e-4)
    for i in meter.steps(a.steps):
        loss = text_loss(m, tokens(8, 256))
        loss.backward()
        o.step()
        o.zero_grad()
        if i % 10 == 0:
            loss.item()


def bucket():
    """Batches of one of four lengths, more of the shorter."""
    m = encoder()
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in meter.steps(a.steps):
        length = random.choice((128, 192, 256, 384))
        loss = text_loss(m, tokens(8, length))
        o.zero_grad()
        loss.backward()
        o.step()
        if i % 10 == 0:
            loss.item()


def padded():
    """Batches padded to their longest line: nearly each has another length."""
    m = encoder()
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in meter.steps(a.steps):
        loss = text_loss(m, tokens(8, max(random.randint(32, 256) for _ in range(8))))
        o.zero_grad()
        loss.backward()
        o.step()
        if i % 10 == 0:
            loss.item()


def inference():
    """Text is written between steps of training, longer by a word each."""
    m = encoder()
    o = torch.optim.AdamW(m.parameters(), 1e-4)
    for i in meter.steps(a.steps):
        loss = text_loss(m, tokens(8, 256))
        o.zero_grad()
        loss.backward()
        o.step()
        if i % 20 == 19:
            m.eval()
            with torch.no_grad():
                text = tokens(1, 16)
                for _ in range(32):
                    text = torch.cat([text, m(text)[:, -1:].argmax(-1)], 1)
            m.train()


def epochs():
    """Epochs of 25 batches, the last one smaller; each is followed by an evaluation and a file with everything in it."""
    m = convolutions(3, 256, width=128, classes=10).cuda()
    o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
    rate = torch.optim.lr_scheduler.StepLR(o, 10)
    sizes = [64] * 24 + [20]
    for i in meter.steps(a.steps):
        n = sizes[i % len(sizes)]
        x, y = torch.zeros(n, 3, 32, 32).cuda(), torch.zeros(n, dtype=torch.long).cuda()
        o.zero_grad()
        loss = F.cross_entropy(m(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        if i % 10 == 0:
            print(f"step {i}: {loss.item():.3f}")
        if i % len(sizes) == len(sizes) - 1:
            rate.step()
            m.eval()
            with torch.no_grad():
                hits = 0
                for k in (64, 64, 64, 12):
                    hits += (m(torch.zeros(k, 3, 32, 32).cuda()).argmax(1) == 0).sum().item()
            m.train()
            torch.save({"model": m.state_dict(), "optimizer": o.state_dict()}, "/dev/null")


def accumulate():
    """Four micro-batches a step, evaluation every 20 steps, a file every 50."""
    m = encoder()
    o = torch.optim.AdamW(m.parameters(), 1e-4, fused=True)
    for i in meter.steps(a.steps):
        total = 0.0
        for _ in range(4):
            loss = text_loss(m, tokens(2, 256)) / 4
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()
        if i % 20 == 19:
            m.eval()
            with torch.no_grad():
                sum(text_loss(m, tokens(4, 256)).item() for _ in range(3))
            m.train()
        if i % 50 == 49:
            torch.save({"model": m.state_dict(), "optimizer": o.state_dict()}, "/dev/null")


def unet():
    """A U-shaped network for segmentation with checkpointed stages, mixed precision and a scaler."""
    from torch.utils.checkpoint import checkpoint

    down = nn.ModuleList(convolutions(3 if i == 0 else 32, 32, 32) for i in range(3)).cuda()
    up = nn.ModuleList(convolutions(64 if i < 2 else 32, 32, 32) for i in range(3)).cuda()
    head = nn.Conv2d(32, 5, 1).cuda()
    weights = [*down.parameters(), *up.parameters(), *head.parameters()]
    o = torch.optim.RMSprop(weights, 1e-5, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for i in meter.steps(a.steps):
        x, y = torch.zeros(8, 3, 96, 96).cuda(), torch.zeros(8, 96, 96, dtype=torch.long).cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            kept = []
            for k, stage in enumerate(down):
                x = checkpoint(stage, x, use_reentrant=False)
                kept.append(x)
                x = F.max_pool2d(x, 2)
            x = up[2](x)
            for k in (1, 0):
                x = F.interpolate(x, size=kept[k + 1].shape[2:])
                x = up[k](torch.cat([x, kept[k + 1]], 1))
            loss = F.cross_entropy(F.interpolate(head(x), size=96), y)
        o.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(o)
        nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(o)
        scaler.update()
        if i % 10 == 0:
            loss.item()


globals()[a.kind]()
meter.done()

"""zoo.py: the networks that are trained, on synthetic data, from fixed seeds.

A network is made on the CPU, so that children which wait for their turn hold no device memory; Work.to() moves it.
A name is that of an entry below, or of one with "-fp32" behind it: convolutions in full single precision, as in the
paper, where cuDNN would otherwise take TF32.
"""

import dataclasses
from typing import Callable

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = {"gpt2": 50257, "llama": 32000}
TOKENS = 1024
TINY_TOKENS = 16

# Convolutions of VGG-16 by their output channels; 0 halves the image.
VGG16 = [64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0]


@dataclasses.dataclass(frozen=True)
class Entry:
    make: Callable  # (tiny) -> module
    data: Callable  # (batch, tiny) -> tensors; the module takes all but the last, which is the target
    loss: Callable  # (module, tensors) -> loss
    batch: int
    bf16: bool = False  # under autocast


@dataclasses.dataclass
class Work:
    """A network, its batch, and how to get a loss from the two."""

    module: nn.Module
    batch: tuple
    entry: Entry
    device: str = "cpu"

    def to(self, device):
        self.module = self.module.to(device)
        self.batch = tuple(tensor.to(device) for tensor in self.batch)
        self.device = device

    def refresh(self):
        """New inputs in the place of the old, the same in every run."""
        inputs = self.batch[0]
        if inputs.is_floating_point():
            inputs.normal_()
        else:
            inputs.random_(0, self.module.config.vocab_size)

    def loss(self, batch=None, module=None):
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.entry.bf16):
            return self.entry.loss(self.module if module is None else module, batch or self.batch)


# ---- networks


def vgg16_cifar(tiny):
    layers, channels = [], 3
    for width in VGG16:
        if width == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    head = [nn.Dropout(), nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(inplace=True), nn.Dropout()]
    return nn.Sequential(*layers, nn.Flatten(), *head, nn.Linear(512, 10))


def resnet50_cifar(tiny):
    net = vision("resnet50", num_classes=10)(tiny)
    net.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)  # images of 32 x 32 are not halved at once
    net.maxpool = nn.Identity()
    return net


def vision(name, **options):
    def make(tiny):
        import torchvision

        return torchvision.models.get_model(name, weights=None, **options)

    return make


def fcn(tiny):
    return vision("fcn_resnet50", weights_backbone=None, num_classes=21)(tiny)


def gpt2(tiny):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2) if tiny else GPT2Config())


def llama(tiny):
    from transformers import LlamaConfig, LlamaForCausalLM

    width, layers = (64, 2) if tiny else (1024, 16)
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=width,
            intermediate_size=2816 * width // 1024,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
            num_key_value_heads=width // 64,
            vocab_size=VOCABULARY["llama"],
        )
    )


# ---- data and losses


def images(side, classes):
    return lambda batch, tiny: (torch.randn(batch, 3, side, side), torch.randint(0, classes, (batch,)))


def masks(batch, tiny):
    side = 64 if tiny else 256
    return torch.randn(batch, 3, side, side), torch.randint(0, 21, (batch, side, side))


def tokens(model):
    return lambda batch, tiny: (torch.randint(0, VOCABULARY[model], (batch, TINY_TOKENS if tiny else TOKENS)),)


def of_classes(module, batch):
    return functional.cross_entropy(module(batch[0]), batch[1])


def of_masks(module, batch):
    return functional.cross_entropy(module(batch[0])["out"], batch[1])


def of_tokens(module, batch):
    return module(input_ids=batch[0], labels=batch[0]).loss


CIFAR, IMAGENET = images(32, 10), images(224, 1000)
ENTRIES = {
    "vgg16": Entry(vgg16_cifar, CIFAR, of_classes, 100),
    "resnet50": Entry(resnet50_cifar, CIFAR, of_classes, 100),
    "vgg16-224": Entry(vision("vgg16"), IMAGENET, of_classes, 64),
    "resnet50-224": Entry(vision("resnet50"), IMAGENET, of_classes, 64),
    "gpt2-bf16": Entry(gpt2, tokens("gpt2"), of_tokens, 16, bf16=True),
    "gpt2": Entry(gpt2, tokens("gpt2"), of_tokens, 16),
    "vit-b16": Entry(vision("vit_b_16"), IMAGENET, of_classes, 64),
    "llama-bf16": Entry(llama, tokens("llama"), of_tokens, 8, bf16=True),
    "mobilenet-v2": Entry(vision("mobilenet_v2"), IMAGENET, of_classes, 64),
    "fcn-resnet50": Entry(fcn, masks, of_masks, 16),
}


def entry_of(name):
    return ENTRIES[name.removesuffix("-fp32")]


def build(name, batch=0, tiny=False):
    """The named network on the CPU. Tiny: of the same form, small enough for a test without a GPU."""
    entry = entry_of(name)
    torch.backends.cudnn.allow_tf32 = not name.endswith("-fp32")
    torch.manual_seed(0)
    module = entry.make(tiny)
    torch.manual_seed(1)
    data = entry.data(batch or (2 if tiny else entry.batch), tiny)
    return Work(module, data, entry)

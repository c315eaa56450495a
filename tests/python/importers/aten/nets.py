"""Nets for the tests, as plain modules of PyTorch."""

import torch


class Bottleneck(torch.nn.Module):
    """1x1, 3x3 and 1x1 convolutions beside a skip connection."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        nn, outputs = torch.nn, 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(torch.nn.Module):
    """As in torchvision."""

    def __init__(self, blocks):
        super().__init__()
        nn, inputs, stages = torch.nn, 64, []
        stem = (nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        self.stem = nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1))
        for stage, count in enumerate(blocks):
            width = 64 * 2**stage
            made = []
            for block in range(count):
                made.append(Bottleneck(inputs, width, 2 if stage and not block else 1))
                inputs = 4 * width
            stages.append(nn.Sequential(*made))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2048, 1000)

    def forward(self, x):
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(torch.flatten(self.pool(x), 1))


class UNet(torch.nn.Module):
    """Two levels down and up, with skips."""

    def __init__(self):
        super().__init__()
        nn = torch.nn

        def convolution(inputs, outputs):
            conv = nn.Conv2d(inputs, outputs, 3, padding=1)
            return nn.Sequential(conv, nn.GroupNorm(4, outputs), nn.SiLU())

        self.down1, self.down2 = convolution(3, 16), convolution(16, 32)
        self.middle = convolution(32, 64)
        self.up2, self.up1 = convolution(96, 32), convolution(48, 16)
        self.out = nn.Conv2d(16, 3, 1)

    def forward(self, x):
        functional = torch.nn.functional
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        x = self.middle(functional.max_pool2d(second, 2))
        x = self.up2(torch.cat([functional.interpolate(x, scale_factor=2), second], 1))
        x = self.up1(torch.cat([functional.interpolate(x, scale_factor=2), first], 1))
        return self.out(x)


class Recommender(torch.nn.Module):
    """Numbers and bags of ids, multiplied with each other."""

    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.tables = nn.ModuleList(nn.EmbeddingBag(1000, 16, mode="sum") for _ in range(4))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(41, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x, ids):
        dense = self.bottom(x)
        vectors = [dense, *(table(ids[:, place]) for place, table in enumerate(self.tables))]
        z = torch.stack(vectors, 1)
        products = (z @ z.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([dense, products], 1)).squeeze(1)


class ComplexAttention(torch.nn.Module):
    """Attention written out, with grouped heads and rotations as complex numbers."""

    def __init__(self, heads=4, groups=2, width=16, seq=32):
        super().__init__()
        nn = torch.nn
        self.heads, self.groups, self.width = heads, groups, width
        self.table = nn.Embedding(100, heads * width)
        self.query = nn.Linear(heads * width, heads * width, bias=False)
        self.key = nn.Linear(heads * width, groups * width, bias=False)
        self.value = nn.Linear(heads * width, groups * width, bias=False)
        self.out = nn.Linear(heads * width, 100, bias=False)
        angles = torch.outer(torch.arange(seq).float(), torch.arange(width // 2).float())
        turns = torch.polar(torch.ones_like(angles), angles)
        self.register_buffer("turns", turns, persistent=False)

    def rotate(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turned = torch.view_as_real(pairs * self.turns[None, :, None, :])
        return turned.flatten(3).type_as(x)

    def forward(self, ids):
        x = self.table(ids)
        batch, seq, _ = x.shape
        q = self.rotate(self.query(x).view(batch, seq, self.heads, self.width))
        k = self.rotate(self.key(x).view(batch, seq, self.groups, self.width))
        v = self.value(x).view(batch, seq, self.groups, self.width)
        k, v = (y.repeat_interleave(self.heads // self.groups, 2) for y in (k, v))
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        mask = torch.full((seq, seq), float("-inf")).triu(1)
        p = (q @ k.transpose(2, 3) / self.width**0.5 + mask).softmax(-1)
        return self.out((p @ v).transpose(1, 2).reshape(batch, seq, -1))

"""ResNet-50 op by op: images a second by data parallelism, and one large image cut in strips."""

import plancast as pc

CHANNELS = (64, 128, 256, 512, 1024, 2048)


class ResNet50:
    """Builds the model for square images; every convolution is followed by batch norm."""

    def __init__(self, image: int, batch_norm: str) -> None:
        self.batch_norm = batch_norm
        sizes = [image // 2**halved for halved in range(6)]
        windows = {f"window{width}": width for width in (1, 3, 7)}
        self.builder = pc.Model.builder(
            "resnet50",
            rgb=3,
            classes=1000,
            **{f"size{size}": size for size in sizes},
            **{f"channels{count}": count for count in CHANNELS},
            **windows,
        )
        self.size = image

    def convolution(self, module, name, x, inputs, channels, *, window=1, stride=1, relu=True):
        """Convolution, batch norm, and the activation unless a sum comes first."""
        out = f"size{self.size // stride}"
        weight = module.parameter(
            f"{name}.w", f"channels{channels}", inputs, f"window{window}", f"window{window}"
        )
        call = f"conv2d(stride={stride}, pad={window // 2})"
        y = module.op(name, call, x, weight, dims={"i": out, "j": out})
        scale = module.parameter(f"{name}.gamma", f"channels{channels}")
        shift = module.parameter(f"{name}.beta", f"channels{channels}")
        local = {"g": "replicas", "b": "replica_batch"} if "local" in self.batch_norm else {}
        y = module.op(f"{name}.norm", self.batch_norm, y, scale, shift, dims=local)
        return module.op(f"{name}.relu", "relu_nd", y) if relu else y

    def block(self, path, inputs, width, *, repeat=1, stride=1, project=False):
        """A bottleneck block; the first of a stage projects its input."""
        module = self.builder.module(path, repeat=repeat)
        size = f"size{self.size}"
        x = module.input("x", "batch", f"channels{inputs}", size, size)
        y = self.convolution(module, "conv1", x, f"channels{inputs}", width)
        y = self.convolution(module, "conv2", y, f"channels{width}", width, window=3, stride=stride)
        if project:
            x = self.convolution(
                module, "project", x, f"channels{inputs}", 4 * width, stride=stride, relu=False
            )
        self.size //= stride
        y = self.convolution(module, "conv3", y, f"channels{width}", 4 * width, relu=False)
        module.output(module.op("relu", "relu_nd", module.op("add", "add", y, x)))

    def build(self):
        stem = self.builder.module("stem")
        x = stem.data("image", "batch", "rgb", f"size{self.size}", f"size{self.size}")
        x = self.convolution(stem, "conv", x, "rgb", 64, window=7, stride=2)
        self.size //= 4
        half = f"size{self.size}"
        pooled = {"i": half, "j": half, "k": "window3", "u": "window3"}
        stem.output(stem.op("pool", "max_pool2d(stride=2, pad=1)", x, dims=pooled))
        inputs = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            width, stride = 64 * 2**stage, 1 if stage == 0 else 2
            self.block(f"stage{stage}.first", inputs, width, stride=stride, project=True)
            inputs = 4 * width
            self.block(f"stage{stage}.rest", inputs, width, repeat=blocks - 1)
        head = self.builder.module("head")
        x = head.input("x", "batch", "channels2048", f"size{self.size}", f"size{self.size}")
        x = head.op("pool", "global_avg_pool", x)
        weight, bias = (
            head.parameter("w", "classes", "channels2048"),
            head.parameter("b", "classes"),
        )
        logits = head.op("classifier", "linear_bias_nd", x, weight, bias)
        head.op("loss", "classification_loss", logits, head.data("label", "batch", dtype="int64"))
        return self.builder.build()


def main() -> None:
    machine = pc.Machine.preset("dgx-a100-80g:1x4")
    model = ResNet50(224, "batch_norm_local").build()
    print(f"{model.parameters:,} parameters")
    forecast = pc.predict(model, machine, pc.Strategy.parse("dp=4,mb=64"), batch=256)
    print(f"data parallel: {256 / forecast.iteration_time:,.0f} images/s")

    # One image of 7,168 x 7,168: each GPU has a strip of it, and neighbours
    # exchange the rows that windows read across borders.
    image = 7168
    strips = pc.Strategy.parse("dp=1,tp=4,mb=1")
    sizes = [f"size{image // 2**halved}" for halved in range(6)]
    strips["*"].split(tp=sizes)
    model = ResNet50(image, "batch_norm").build()
    for name, strategy in (("whole", pc.Strategy.parse("dp=1,tp=4,mb=1")), ("strips", strips)):
        forecast = pc.predict(model, machine, strategy, batch=1)
        gib = max(memory.device for memory in forecast.memory) / 2**30
        print(f"{name}: {forecast.iteration_time:.2f} s, {gib:.0f} GiB")


if __name__ == "__main__":
    main()

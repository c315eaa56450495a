"""Nets of the zoo: images a second by data parallelism, and one large image cut in strips."""

import plancast as pc

# Micro-batches of images on one GPU.
NETS = {"resnet50": 256, "resnext101-32x4d": 128, "inception-v3": 128, "vgg19": 128}


def main() -> None:
    machine = pc.Machine.preset("dgx-a100-80g:1x4")
    for name, images in NETS.items():
        model = pc.Model.preset(name)
        strategy = pc.Strategy.parse(f"dp=4,mb={images}")
        forecast = pc.predict(model, machine, strategy, dtype="fp16", profile="nvidia-pytorch")
        print(f"{name}: {model.parameters:,} parameters, {forecast.samples_per_s:,.0f} images/s")

    # One image of 7,168 x 7,168: each GPU has a strip of it, and neighbours exchange the
    # rows that windows read across borders.
    model = pc.Model.preset("resnet50", image=7168)
    strips = pc.Strategy.parse("dp=1,tp=4,mb=1")
    strips["*"].split(tp=[dim for dim in model.dims if dim.startswith("height")])
    for name, strategy in (("whole", pc.Strategy.parse("dp=1,tp=4,mb=1")), ("strips", strips)):
        forecast = pc.predict(model, machine, strategy, batch=1)
        gib = max(memory.device for memory in forecast.memory) / 2**30
        print(f"{name}: {forecast.iteration_time:.2f} s, {gib:.0f} GiB")


if __name__ == "__main__":
    main()

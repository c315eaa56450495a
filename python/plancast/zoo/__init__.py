"""Models that are built op by op: convolutional nets, recommenders, T5, vision transformers.

`catalogue.yaml` lists them; each family is a module. They are presets like the
transformers of presets.yaml: `Model.preset("resnet50", image=288)`.
"""

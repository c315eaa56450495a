"""Models that are built op by op: convolutional nets, recommenders, T5, vision transformers.

`catalogue.yaml` lists them; each family is a module. They are presets like the
transformers of the catalogue: `Model.preset("resnet50", image=288)`.
"""

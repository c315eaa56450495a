"""Models from where people keep them: torch.export programs, PyTorch modules, ONNX files.

A reader makes a graph of values and nodes (`ir`), passes make composite ops of it
(`passes`), `binding` finds which dims are the same, `lower` writes op rules over named
dims, and `segments` finds equal layers. docs/importing.md says what is recognised.
"""

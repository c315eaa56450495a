"""Contents of constants, where they decide what a model costs."""

from __future__ import annotations

import os.path
from typing import Any

# A mask of 4,096 positions in single precision.
_LARGEST = 64 * 2**20


def is_causal(tensor: Any, path: str) -> bool:
    """Whether a constant mask hides from every position those after it.

    Contents that are neither in the file nor beside it are unknown, and hide nothing.
    """
    import numpy as np

    shape = tuple(tensor.dims)
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
        return False
    values = _contents(tensor, path)
    if values is None or values.size % (shape[-1] * shape[-2]):
        return False
    square = values.reshape(-1, shape[-2], shape[-1])[0].astype(np.float64)
    later = square[np.triu_indices(shape[-1], 1)]
    earlier = square[np.tril_indices(shape[-1])]
    with np.errstate(all="ignore"):
        return bool(later.max() < earlier.min())


def _contents(tensor: Any, path: str) -> Any:
    import numpy as np
    import onnx
    from onnx import numpy_helper

    elements = 1
    for size in tensor.dims:
        elements *= size
    if not 0 < elements * 4 <= _LARGEST:
        return None
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    folder = os.path.dirname(os.path.abspath(path))
    file = os.path.abspath(os.path.join(folder, entries.get("location", "")))
    # Files name the place of their data; none but files beside them are opened.
    if os.path.dirname(file) != folder or not os.path.isfile(file) or os.path.islink(file):
        return None
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    length = elements * np.dtype(dtype).itemsize
    with open(file, "rb") as data:
        data.seek(max(0, int(entries.get("offset", 0))))
        raw = data.read(length)
    return np.frombuffer(raw, dtype) if len(raw) == length else None

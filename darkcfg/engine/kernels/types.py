"""torch's types as Triton's."""

from collections.abc import Mapping

import torch
import triton.language as tl

TRITON_TYPES: Mapping[torch.dtype, tl.dtype] = {
    torch.bfloat16: tl.bfloat16,
    torch.float16: tl.float16,
    torch.float32: tl.float32,
}

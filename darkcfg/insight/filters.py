"""What the first layer looks for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darkcfg.language.plan import IMAGE
from darkcfg.network.assembly import Network
from darkcfg.network.convolutional import Convolutional


def first_filters(net: Network) -> NDArray[np.float32] | None:
    """The filters (F, C, k, k) of the first convolution that reads the image; None where there is none."""
    for layer, module in net.layer_modules():
        if isinstance(module, Convolutional) and layer.sources[0] == IMAGE:
            return np.asarray(module.weight.detach().float().cpu().numpy(), np.float32)
    return None

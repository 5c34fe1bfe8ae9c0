"""One value for each chain of a batch, in its row: numbers shaped to broadcast, and choices between two batches."""

import torch
from torch import Tensor


def expand_rows(values: Tensor, x: Tensor) -> Tensor:
    """One number, or one for each chain ``(B,)``, shaped to broadcast against ``x`` ``(B, *event)``."""
    return values.view(-1, *[1] * (x.ndim - 1)) if values.ndim else values


def where_rows(taken: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Row by row, ``new`` where ``taken`` ``(B,)``, else ``old``."""
    return torch.where(expand_rows(taken, new), new, old)

"""Convergence diagnostics by arviz (an extra): effective sample size, split R̂, and conversion of chains."""

import importlib
from typing import Any

import torch
from torch import Tensor

from adance.energies.energy import Energy, energies, eval_mode
from adance.errors import InputError
from adance.samplers.chains import Chains


def to_arviz(chains: Chains | Tensor, energy: Energy | None = None, thin: int = 1) -> Any:
    """Convert chains for ArviZ, with the variable ``x`` ``(chain, draw, *event)``.

    The result is an xarray ``DataTree`` for ArviZ 1 and later, and an ``InferenceData`` for earlier versions.

    Args:
        chains: What :func:`run_chains` returned with ``record=True``, or positions ``(draws, B, *event)``.
        energy: If given, ``sample_stats`` has the energy of every draw.
        thin: Keep only every ``thin``-th draw.

    Raises:
        InputError: arviz is not installed, or the chains were not recorded.
    """
    az, positions = _arviz(), _positions(chains)[::thin]
    groups = {"posterior": {"x": positions.transpose(0, 1).cpu().numpy()}}
    if energy is not None:
        with eval_mode(energy):
            values = torch.stack([energies(energy, x) for x in positions])
        groups["sample_stats"] = {"energy": values.T.cpu().numpy()}
    return az.from_dict(**groups) if az.__version__.startswith("0.") else az.from_dict(groups)


def effective_sample_size(chains: Chains | Tensor, method: str = "bulk") -> Tensor:
    """Effective sample size of all chains together, for each coordinate ``(*event)``.

    Args:
        chains: What :func:`run_chains` returned with ``record=True``, or positions ``(draws, B, *event)``.
        method: Method of arviz, such as ``bulk``, ``tail`` or ``mean``.

    Raises:
        InputError: arviz is not installed, or the chains were not recorded.
    """
    return torch.as_tensor(_arviz().ess(to_arviz(chains), method=method)["x"].values)


def split_rhat(chains: Chains | Tensor) -> Tensor:
    """Split R̂ of each coordinate ``(*event)``; above 1.01 or so the chains have not converged.

    Args:
        chains: What :func:`run_chains` returned with ``record=True``, or positions ``(draws, B, *event)``.

    Raises:
        InputError: arviz is not installed, or the chains were not recorded.
    """
    return torch.as_tensor(_arviz().rhat(to_arviz(chains), method="split")["x"].values)


def summary(chains: Chains) -> dict[str, float]:
    """Diagnostics of a run; per-coordinate diagnostics are those of the worst coordinate.

    The means are over all chains and the second half of the steps.

    Returns:
        ``acceptance``, ``energy``, ``gradient_norm`` (NaN for kernels without gradients), ``finite`` (the share of
        chains that stayed finite), and, for recorded chains, ``effective_sample_size`` and ``split_rhat``.

    Raises:
        InputError: The chains were recorded and arviz is not installed.
    """
    found = {
        name: float(values[len(values) // 2 :].nanmean())
        for name in ("acceptance", "energy", "gradient_norm")
        for values in [getattr(chains, name)]
    }
    found["finite"] = float(chains.finite.float().mean())
    if chains.positions is not None:
        found["effective_sample_size"] = float(effective_sample_size(chains).min())
        found["split_rhat"] = float(split_rhat(chains).max())
    return found


def _positions(chains: Chains | Tensor) -> Tensor:
    positions = chains.positions if isinstance(chains, Chains) else chains
    if positions is None:
        raise InputError("the positions of these chains were not recorded: use run_chains(..., record=True)")
    if len(positions) < 4:
        raise InputError(f"{len(positions)} recorded positions per chain are too few for diagnostics: use at least 4")
    return positions


def _arviz() -> Any:
    try:
        return importlib.import_module("arviz")
    except ImportError:
        raise InputError("these diagnostics need arviz: pip install adance[diagnostics]") from None

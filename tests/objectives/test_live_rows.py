"""The gradient of the rows that count is the gradient; weights that cannot matter are 0."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

import adance
from adance.contrasts import Logistic
from adance.energies.frozen import freeze
from adance.noises import Noise, NoiseSample
from adance.objectives.contrastive import Contrastive
from adance.objectives.live_rows import LiveRows, bucket_size, drop_negligible
from adance.objectives.log_ratio import LogRatio


class CopyNoise(Noise):
    """Given samples and a model's energies, with a gap between data and noise except for one row of each."""

    normalized = False

    def __init__(self, energy: nn.Module, x: Tensor, gap: float = 0.0) -> None:
        super().__init__()
        self.model, self.x, self.gap = freeze(energy), x, gap

    def sample(
        self, n: int, data: Tensor, generator: torch.Generator | None = None, condition: Tensor | None = None
    ) -> NoiseSample:
        return NoiseSample(self.x[:n])

    def energy(self, x: Tensor, sample: NoiseSample | None = None, condition: Tensor | None = None) -> Tensor:
        side = torch.ones(len(x) // 2)
        side[0] = 0
        return self.model(x) + self.gap * torch.cat([side, -side])


def saturated(
    ratio_temperature: float, penalty: float = 0.0, gap: float = 0.0
) -> tuple[nn.Module, Contrastive, Tensor]:
    torch.manual_seed(0)
    energy = adance.ConvNet((1, 8, 8), spectral_norm=False).double()
    noise = CopyNoise(energy, torch.rand(48, 1, 8, 8, dtype=torch.float64) * 2 - 1, gap)
    with torch.no_grad():
        for parameter in energy.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    ratio = LogRatio(ratio_temperature, "centered")
    objective = Contrastive(Logistic(), noise, ratio, energy_penalty=penalty).double()
    return energy, objective, torch.rand(48, 1, 8, 8, dtype=torch.float64) * 2 - 1


def gradients(energy: nn.Module, objective: Contrastive, x: Tensor) -> Tensor:
    energy.zero_grad()
    objective.loss(energy, x).value.backward()
    return torch.cat([parameter.grad.flatten() for parameter in energy.parameters() if parameter.grad is not None])


@pytest.mark.parametrize("penalty", [0.0, 0.01])
@pytest.mark.parametrize("temperature", [1e-4, 1e-3, 0.1])
def test_few_live_rows_give_the_gradient_of_all(temperature: float, penalty: float) -> None:
    energy, objective, x = saturated(temperature, penalty)
    direct = nn.Sequential(
        energy, nn.Dropout(0.1)
    )  # dropout turns the choice of rows off, in eval mode it does nothing
    direct[1].p = 1e-12
    reference = gradients(direct, objective, x)
    all_rows = gradients(energy, objective, x)
    objective.rows.share.fill_(0.0)
    few_rows = gradients(energy, objective, x)
    torch.testing.assert_close(all_rows, reference, rtol=1e-6, atol=1e-7 * float(reference.abs().max()))
    torch.testing.assert_close(few_rows, all_rows, rtol=1e-9, atol=1e-12 * float(reference.abs().max()))


def test_loss_and_metrics_do_not_depend_on_the_choice() -> None:
    energy, objective, x = saturated(1e-3)
    before = objective.loss(energy, x)
    objective.rows.share.fill_(0.0)
    after = objective.loss(energy, x)
    assert float(before.value) == float(after.value)
    assert {k: float(v) for k, v in before.metrics.items()} == {k: float(v) for k, v in after.metrics.items()}


def test_a_saturated_batch_evaluates_few_rows_again() -> None:
    energy, objective, x = saturated(1e-3, gap=1.0)
    objective.rows.share.fill_(0.0)
    rows = []
    energy.register_forward_hook(lambda _, inputs, out: rows.append((len(inputs[0]), out.requires_grad)))
    objective.loss(energy, x)
    assert rows[0] == (96, False)
    assert rows[1] == (8, True)


def test_the_share_of_live_rows_is_a_running_mean() -> None:
    energy, objective, x = saturated(1e-3, gap=1.0)
    objective.loss(energy, x)
    assert float(objective.rows.share) == pytest.approx(0.9 + 0.1 * 2 / 96, abs=1e-6)
    for _ in range(60):
        objective.loss(energy, x)
    assert float(objective.rows.share) == pytest.approx(2 / 96, abs=0.9**60)


def test_negligible_weights_are_zero_and_the_others_unchanged() -> None:
    weights = torch.tensor([1.0, -1e-7, 2e-9, -3e-12, 1e-40, 0.0])
    assert drop_negligible(weights).tolist() == [1.0, weights[1].item(), 0.0, 0.0, 0.0, 0.0]
    assert drop_negligible(torch.tensor([1e-21, -1e-25])).tolist() == [0.0, 0.0]
    assert drop_negligible(torch.tensor([float("nan"), 1.0])).isnan().any()


@pytest.mark.parametrize(("live", "rows", "size"), [(0, 256, 8), (8, 256, 8), (9, 256, 16), (200, 256, 256), (3, 5, 5)])
def test_bucket_sizes_double(live: int, rows: int, size: int) -> None:
    assert bucket_size(live, rows) == size


def test_energies_without_convolutions_take_one_forward_pass() -> None:
    energy = adance.MLP((4,), hidden=(8,))
    noise = CopyNoise(energy, torch.randn(16, 4))
    objective = Contrastive(Logistic(), noise, LogRatio(1e-6, "centered"))
    objective.rows.share.fill_(0.0)
    calls = []
    energy.register_forward_hook(lambda *_: calls.append(1))
    objective.loss(energy, torch.randn(16, 4)).value.backward()
    assert len(calls) == 1


FLUSHES = """
import torch
from adance.commands.process import process_settings
tiny = torch.full((200_000,), 1e-30)
with process_settings():
    inside = float((tiny * 1e-10).max())
print(inside, float((tiny[:10] * 1e-10).max()) > 0)
"""


def test_commands_flush_denormals_on_all_threads_until_they_end() -> None:
    code = f"import torch; torch.set_num_threads(2)\n{FLUSHES}"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["0.0", "True"]


@pytest.mark.parametrize("rows", [1, 7, 9])
def test_energies_of_double_precision(rows):
    energy = adance.ConvNet((1, 8, 8)).double().eval()
    x = torch.randn(rows, 1, 8, 8, dtype=torch.float64)
    weights = torch.eye(rows, dtype=torch.float64)[0]
    (weights @ energy(x)).backward()
    expected = [parameter.grad.clone() for parameter in energy.parameters()]
    live_rows = LiveRows()
    live_rows.share.fill_(0.1)
    energy.zero_grad()
    out = live_rows.evaluate(energy, x)
    out.connect(weights @ out.energies).backward()
    for parameter, gradient in zip(energy.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient)

"""
An energy inside a Lightning module
===================================

Lightning runs the training loop (``pip install "adance[lightning]"``). The objective needs one call in
``training_step`` and one after the optimizer's step. The data are eight Gaussians on a circle.
"""

import lightning
import matplotlib.pyplot as plt
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

import adance
from adance import plot

lightning.seed_everything(0)


class EnergyModule(lightning.LightningModule):
    """Trains an energy by AdaNCE, whose noise comes from an earlier copy of the energy."""

    def __init__(self, events, batch_size):
        super().__init__()
        self.energy = adance.MLP(tuple(events.shape[1:]), [64, 64])
        self.noise_generator = torch.Generator().manual_seed(0)
        self.objective = adance.AdaNCE(interval=50).build(
            self.energy, events, batch_size=batch_size, generator=self.noise_generator
        )

    def training_step(self, batch, batch_idx):
        """The loss, with the metrics that ``adance train`` logs."""
        (x,) = batch
        self.out = self.objective.loss(self.energy, x, self.noise_generator)
        self.log_dict({name: float(value) for name, value in self.out.metrics.items()})
        return self.out.value

    def on_train_batch_end(self, outputs, batch, batch_idx):
        """Refresh the snapshot every K steps."""
        self.objective.after_step(self.energy, self.global_step, self.out)

    def configure_optimizers(self):
        """Adam, with the settings of ``adance train``."""
        return torch.optim.Adam(self.parameters(), lr=2e-3, betas=(0.0, 0.99))


data = adance.load_data("8gaussians")
events = data.batch(torch.arange(len(data.train)))
rows = TensorDataset(events)
loader = DataLoader(rows, batch_size=128, sampler=RandomSampler(rows, replacement=True, num_samples=128 * 600))
module = EnergyModule(events, batch_size=128)
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
trainer.fit(module, loader)
energy = adance.freeze(module.energy)

# %%
# Held-out data have lower energies than uniform points from the square around them.

held_out = data.batch(torch.arange(500), "test")
square = held_out.abs().max() * (2 * torch.rand(500, 2) - 1)
print(f"mean energy: held-out data {energy(held_out).mean():.2f}, points from the square {energy(square).mean():.2f}")

figure, ax = plt.subplots(figsize=(4, 4))
plot.density(energy, held_out, ax=ax)
plt.show()

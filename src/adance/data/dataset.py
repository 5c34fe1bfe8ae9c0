"""Data sets: rows in their own units, and the transform to the model's units."""

from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from adance.data.memory import read_memory
from adance.data.rows import AnyRows
from adance.data.splits import HELD_OUT, Splits, complete, in_range
from adance.data.transforms import Transform
from adance.randomness import check_seed


@dataclass(frozen=True, eq=False)
class Dataset(Splits):
    """A data set with a training split and a held-out split.

    Attributes:
        name: name that the set was loaded by.
        kind: "image" for events (C, H, W), "vector" for events (D,).
        train: raw training rows ``(N, *event)``; bytes stay uint8 until `batch` asks for them. Rows above 1 GiB from an
            .npy file or a folder stay on disk, as a `LazyRows` that returns tensors when it is indexed.
        test: raw held-out rows ``(M, *event)``.
        transform: raw units to model units, fitted on the training rows alone.
        train_labels: class of each training row (N,) int64, or None.
        test_labels: class of each held-out row (M,) int64, or None.
        density: the exact distribution of the rows in raw units, if known.
        image_size: side that images were resized to while loading, None if they were not.
        source: arguments of `load_data` that load this set again, None if it was not loaded by it.
        columns: names of a table's features, None without names.
    """

    test: AnyRows = field()  # required, unlike in Splits
    transform: Transform = field()
    source: dict[str, Any] | None = None

    @classmethod
    def from_arrays(
        cls,
        x_train: Any,
        x_test: Any = None,
        y_train: Any = None,
        y_test: Any = None,
        *,
        name: str = "data",
        held_out: float = HELD_OUT,
        seed: int = 0,
    ) -> "Dataset":
        """A data set from NumPy arrays, torch tensors or pandas DataFrames, which are copied.

        Arrays ``(N, D)`` are vectors, standardized by the training rows. Arrays ``(N, H, W)``, ``(N, H, W, C)`` or
        ``(N, C, H, W)`` with C of 1 or 3 are images: integers in 0..255, booleans, or floats in [0, 1] or [-1, 1]. A
        DataFrame is read like a .csv file: a column called class, label, target or y, or otherwise a last column of
        text, is the label, and all other columns must be numbers.

        Args:
            x_train: Training rows.
            x_test: Held-out rows; by default part of the training rows is held out.
            y_train: Labels of the training rows ``(N,)``: whole numbers or names.
            y_test: Labels of the held-out rows.
            name: Name of the data set in messages and run folders.
            held_out: Fraction of the rows, in (0, 1), to hold out if there is no ``x_test``.
            seed: Seed of the choice of held-out rows.

        Raises:
            InputError: A shape, type or value cannot be used, or the parts do not match.
        """
        check_seed(seed, "the data's seed")
        return cls.from_splits(read_memory(name, x_train, x_test, y_train, y_test), held_out, seed)

    @classmethod
    def from_splits(cls, splits: Splits, held_out: float, seed: int) -> "Dataset":
        """A data set of rows as a reader found them, with a held-out part and a transform.

        Raises:
            InputError: There are too few rows, or images whose values fit no known range.
        """
        whole = complete(splits, held_out, seed)
        assert whole.test is not None
        assert whole.transform is not None
        if whole.kind == "vector":
            in_range(whole.name, whole.test, whole.transform)
        return cls(**vars(whole))

    def __repr__(self) -> str:
        """A summary in one line, without the tensors."""
        classes = 0 if self.train_labels is None else len(set(self.train_labels.tolist()))
        labels = f", labels of {classes} classes" if classes else ""
        train, test = tuple(self.train.shape), tuple(self.test.shape)
        return f"Dataset({self.name!r}, {self.kind}, train {train}, test {test}{labels})"

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one row: (C, H, W) or (D,)."""
        return tuple(self.train.shape[1:])

    def batch(self, rows: Tensor, split: Literal["train", "test"] = "train") -> Tensor:
        """Rows in model units.

        Args:
            rows: indices (B,) into the split, int64.
            split: "train" or "test".

        Returns:
            Float32 ``(B, *event)``, images in [-1, 1].
        """
        raw = self.train if split == "train" else self.test
        return self.transform.to_model(raw[rows])

    def describe(self) -> dict[str, Any]:
        """JSON-able summary, enough for `load_for_model` to bring other rows into the same units."""
        return {
            "name": self.name,
            "kind": self.kind,
            "event_shape": list(self.event_shape),
            "n_train": len(self.train),
            "n_test": len(self.test),
            "image_size": self.image_size,
            "columns": None if self.columns is None else list(self.columns),
            "transform": self.transform.state(),
        }

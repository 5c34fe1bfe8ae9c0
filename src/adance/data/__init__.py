"""Data sets: toys with exact densities, files, folders and hub sets, and their units."""

from adance.data.arrays import read_array
from adance.data.dataset import Dataset
from adance.data.folder import read_folder
from adance.data.hub import HUB, load_hub
from adance.data.load import NAMES, load_data, load_for_model, rows_for_model
from adance.data.rows import AnyRows, LazyRows
from adance.data.table import read_table
from adance.data.toys2d import TOYS, Toy
from adance.data.transforms import Identity, ImageScale, Standardize, Transform, transform_from_state

__all__ = [
    "HUB",
    "NAMES",
    "TOYS",
    "AnyRows",
    "Dataset",
    "Identity",
    "ImageScale",
    "LazyRows",
    "Standardize",
    "Toy",
    "Transform",
    "load_data",
    "load_for_model",
    "load_hub",
    "read_array",
    "read_folder",
    "read_table",
    "rows_for_model",
    "transform_from_state",
]

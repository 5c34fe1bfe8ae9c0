"""Pictures: grids of images, and densities in the plane."""

from adance.pictures.grid import save_grid
from adance.pictures.plane import save_plane

__all__ = ["save_grid", "save_plane"]

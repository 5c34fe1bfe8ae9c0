"""What counts as a number of things."""

from numbers import Integral


def is_whole(number: object) -> bool:
    """Whether it is a whole number, numpy's too, and not a truth value."""
    return isinstance(number, Integral) and not isinstance(number, bool)

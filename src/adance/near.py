"""The name that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean moons?)`` where a known name is near, upper and lower case counting as one; else nothing."""
    by_folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), by_folded, 1)
    return f" (did you mean {by_folded[near[0]]}?)" if near else ""

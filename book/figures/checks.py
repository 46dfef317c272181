"""What several figures refuse."""

from collections.abc import Collection, Iterable


def all_known(argument: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """Refuse a name that is not among the `allowed` ones."""
    for name in names:
        if name not in allowed:
            raise ValueError(f"{argument}: {name!r} is not one of {list(allowed)}")

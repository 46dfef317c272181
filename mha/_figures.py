"""What figures of both kinds need, drawn or interactive."""


def as_alt(alt: str) -> str:
    """Return the sentence that stands for a figure, or refuse an empty one."""
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("alt must say in one sentence what the picture shows")
    return alt.strip()

"""What to install where a part of the package needs more than NumPy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

# As in pyproject.toml, under [project.optional-dependencies].
EXTRAS = {
    "torch": ("torch>=2.6",),
    "plot": ("matplotlib>=3.9",),
}


@contextmanager
def needs(part: str, extra: str) -> Iterator[None]:
    """Say which extra `part` of the package lacks, if an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        packages = [re.split("[>=<]", requirement)[0] for requirement in EXTRAS[extra]]
        if (error.name or "").partition(".")[0] not in packages:
            raise  # not an extra of ours
        command = " ".join(f'"{requirement}"' for requirement in EXTRAS[extra])
        raise ModuleNotFoundError(
            f"{part} needs {' and '.join(packages)}, the extra [{extra}] of mha "
            f"({error}): pip install {command}",
            name=error.name,
        ) from error

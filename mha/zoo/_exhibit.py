"""What everything in the zoo has: a name, a mistake, a place where it was seen."""

import inspect
import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from mha._source import source

__all__ = ["Exhibit"]

# NumPy and torch spell the steps alike, so one code runs on the arrays of both.
Array = Any


class Exhibit:
    """Stand in the zoo under a name.

    Attributes
    ----------
    name : str
        The slug under which the member stands in `mha.zoo`.
    chapter : str
        Slug of the chapter that has the step that went wrong.
    wrong : str
        What was done wrong, one sentence.
    seen, link : str
        Where it was seen in public; the link is empty where no sighting is known.
    """

    name: str
    chapter = "laws"
    wrong = "nothing"
    seen = "no public sighting known"
    link = ""
    # Whether arrays do not show the mistake, and what `mha.laws.check` is to be told.
    on_tensors = False
    says: Mapping[str, Any] = MappingProxyType({})

    def __init_subclass__(cls, chapter: str | None = None) -> None:
        cls.chapter = chapter or cls.chapter

    @property
    def source(self) -> str:
        """The code of what is wrong; of every step, for the correct one."""
        lines = inspect.getsource(type(self)).splitlines()
        steps = [i for i, line in enumerate(lines) if line.startswith("    def ")]
        if not steps:
            return source(type(self).__mro__[1])
        return textwrap.dedent("\n".join(lines[steps[0] :])).rstrip()

    def __repr__(self) -> str:
        return f"zoo.{self.name}: {self.wrong}"

    def __reduce__(self) -> str:
        # There is one of each: copies and pickles lead back to it.
        return self.name


Kind = TypeVar("Kind", bound=Exhibit)


def exhibit(kind: type[Kind]) -> Kind:
    """Replace the class by its one instance, under the same name."""
    member = kind()
    member.name = kind.__name__
    return member

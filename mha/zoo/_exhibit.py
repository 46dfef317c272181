"""What everything in the zoo has: a name, a mistake, a place where it was seen."""

import inspect
import textwrap

from mha._source import source

__all__ = ["Exhibit"]

NO_SIGHTING = "no public sighting known"


class Exhibit:
    """Stand in the zoo under a name."""

    chapter = "laws"
    wrong = "nothing"
    seen = ""
    link = ""

    @property
    def source(self):
        """The code of what is wrong; of every step, for the right one."""
        lines = inspect.getsource(type(self)).splitlines()
        steps = [i for i, line in enumerate(lines) if line.startswith("    def ")]
        if not steps:
            return source(type(self).__base__)
        return textwrap.dedent("\n".join(lines[steps[0] :])).rstrip()

    def __repr__(self):
        return f"zoo.{self.name}: {self.wrong}"

    def __reduce__(self):
        # There is one of each: copies and pickles lead back to it.
        return self.name


def exhibit(kind):
    """Replace the class by its one instance, under the same name."""
    member = kind()
    member.name = kind.__name__
    return member

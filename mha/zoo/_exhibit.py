"""What everything in the zoo has: a name, a mistake, a place where it was seen."""

import inspect
import textwrap

from mha._source import source

NO_SIGHTING = "no public sighting known"


class Exhibit:
    """Stand in the zoo under a name."""

    chapter = 14
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

    @property
    def killed_by(self):
        """Slugs of the laws that the member breaks."""
        from mha import zoo  # the table stands on the members

        group = zoo.ENCODERS if self in zoo.ENCODERS else zoo.ALL
        return zoo.kill_matrix(members=group).killed_by(self.name)

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

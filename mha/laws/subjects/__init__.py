"""What can be checked, and how it is made to answer.

`as_subject` finds out what was handed in: a function or a module, of NumPy or of torch,
or an `Adapter`. A `Subject` answers the laws in NumPy, whatever it is underneath.
"""

from mha.laws.subjects.adapter import Adapter
from mha.laws.subjects.conventions import Conventions, NotApplicable
from mha.laws.subjects.recognise import as_subject
from mha.laws.subjects.results import Broke
from mha.laws.subjects.subject import Subject, Trace

__all__ = [
    "Adapter", "Broke", "Conventions", "NotApplicable", "Subject", "Trace",
    "as_subject",
]  # fmt: skip

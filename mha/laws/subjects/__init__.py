"""What can be checked, and how it is made to answer.

`as_subject` finds out what was handed in: a function or a module, of NumPy or of torch,
or an `Adapter`. A `Subject` answers the laws in NumPy, whatever it is underneath.
"""

from mha.laws.subjects.adapter import Adapter
from mha.laws.subjects.recognise import as_subject
from mha.laws.subjects.subject import Broke, NotApplicable, Subject

__all__ = ["Adapter", "Broke", "NotApplicable", "Subject", "as_subject"]

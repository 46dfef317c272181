# ruff: noqa: F403 - each module says in its __all__ what is public
"""The zoo: correct attention, and versions of it that are wrong in one step each.

`ALL` are the members that attend, the correct one first. `ENCODERS` attend correctly
and have another mistake around it. Members take NumPy arrays and torch tensors, and
gradients flow through them, but for the one that stops them. The zoo imports no law:
`mha.laws` is what catches them.
"""

from mha.zoo._attention import *
from mha.zoo._calls import *
from mha.zoo._encoders import *
from mha.zoo._exhibit import *

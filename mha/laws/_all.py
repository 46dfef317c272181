"""All laws, in the order of the book. A new law is found in its module."""

from types import ModuleType

from mha.laws import _attention, _calls, _encoder, _layers, _masks, _weights
from mha.laws._law import Law

__all__ = ["ALL", "ATTENTION", "CALLS", "ENCODER", "WHOLE"]


def _laws_in(*modules: ModuleType) -> tuple[Law, ...]:
    found = (x for module in modules for x in vars(module).values())
    return tuple(x for x in found if isinstance(x, Law))


# What must be true of attention, as the chapters earn it.
ATTENTION = _laws_in(_weights, _masks, _attention, _layers)
# What else a call may ask: batches, other masks, gradients, lengths, dtypes.
CALLS = _laws_in(_calls)
ALL = ATTENTION + CALLS
# What must be true of all that surrounds attention; asked of encoders only.
ENCODER = _laws_in(_encoder)
# What an encoder is asked as a whole, and not about its attention alone.
WHOLE = (
    _masks.empty_rows_give_zero,
    _masks.future_leaves_past_alone,
    _masks.padding_changes_nothing,
    _masks.self_only_mask,
    _layers.equals_reference,
    *ENCODER,
)

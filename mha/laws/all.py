"""All laws, in the order of the book. A new law is found in its module."""

from types import ModuleType

from mha.laws import calls, encoders, layers, masks, weights
from mha.laws.judge import Law

__all__ = ["ALL", "ATTENTION", "CALLS", "ENCODER", "WHOLE"]


def _laws_in(*modules: ModuleType) -> tuple[Law, ...]:
    found = (x for module in modules for x in vars(module).values())
    return tuple(x for x in found if isinstance(x, Law))


# What must be true of attention, from dot products to many heads.
ATTENTION = _laws_in(weights, masks, layers)
# What else a call may ask: batches, other masks, gradients, lengths, dtypes.
CALLS = _laws_in(calls)
ALL = ATTENTION + CALLS
# What must be true of all that surrounds attention; asked of encoders only.
ENCODER = _laws_in(encoders)
# What an encoder is asked as a whole, and not about its attention alone.
WHOLE = (
    masks.empty_rows_give_zero,
    masks.future_leaves_past_alone,
    masks.padding_changes_nothing,
    masks.self_only_mask,
    layers.equals_reference,
    *ENCODER,
)

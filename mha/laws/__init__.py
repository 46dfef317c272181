"""What must be true of any attention: laws that a wrong version breaks.

Wrong attention trains to 100 % (chapter 12), so a loss curve proves nothing. A law is a
short executable statement, true of right attention and false of some wrong one.

>>> from mha import laws, scaled_dot_product_attention
>>> bool(laws.check(scaled_dot_product_attention))
True

In a test of your own, one line does it::

    from mha import laws
    def test_my_layer_keeps_the_laws():
        laws.assert_lawful(my_layer)

From a shell, ``python -m mha.laws my_package.layers:my_layer`` does it, and `Adapter`
makes checkable what `check` does not know.
"""

from functools import partial

from mha.laws._adapter import Adapter
from mha.laws._attention import (
    dtype_is_kept,
    inputs_stay_untouched,
    key_order_is_free,
    outputs_follow_tokens,
    scores_are_not_symmetric,
    shifting_keys_changes_nothing,
)
from mha.laws._encoder import (
    batch_changes_nothing,
    both_parts_write_on_one_stream,
    layers_follow_each_other,
    post_norm_normalises_rows,
    silent_parts_pass_the_input_on,
    tokens_meet_in_attention_only,
    training_mode_changes_nothing,
)
from mha.laws._law import Failure, Law
from mha.laws._layers import (
    concat_is_a_sum,
    equals_reference,
    head_moves_its_own_slice,
    head_owns_its_columns,
    parameters_ignore_heads,
)
from mha.laws._lookalike import lookalike
from mha.laws._masks import (
    empty_rows_give_zero,
    future_leaves_past_alone,
    masked_weights_are_zero,
    padding_changes_nothing,
    self_only_mask,
)
from mha.laws._recognise import as_subject
from mha.laws._report import Finding, Report
from mha.laws._stacks import encoder_weights
from mha.laws._weights import (
    constant_values_stay,
    doubling_changes_nothing,
    output_in_hull,
    rotation_changes_nothing,
    rows_sum_to_one,
    scores_keep_unit_variance,
)

ALL = (
    rotation_changes_nothing,
    rows_sum_to_one,
    output_in_hull,
    constant_values_stay,
    scores_keep_unit_variance,
    doubling_changes_nothing,
    masked_weights_are_zero,
    empty_rows_give_zero,
    future_leaves_past_alone,
    padding_changes_nothing,
    self_only_mask,
    outputs_follow_tokens,
    key_order_is_free,
    shifting_keys_changes_nothing,
    scores_are_not_symmetric,
    inputs_stay_untouched,
    dtype_is_kept,
    head_owns_its_columns,
    head_moves_its_own_slice,
    concat_is_a_sum,
    parameters_ignore_heads,
    equals_reference,
)
# What must be true of all that stands around attention; asked of encoders only.
ENCODER = (
    batch_changes_nothing,
    training_mode_changes_nothing,
    silent_parts_pass_the_input_on,
    both_parts_write_on_one_stream,
    tokens_meet_in_attention_only,
    post_norm_normalises_rows,
    layers_follow_each_other,
)
# What an encoder is asked as a whole, and not about its attention alone.
WHOLE = (
    empty_rows_give_zero,
    future_leaves_past_alone,
    padding_changes_nothing,
    self_only_mask,
    equals_reference,
    *ENCODER,
)

__all__ = [
    "ALL",
    "ENCODER",
    "Adapter",
    "Failure",
    "Finding",
    "Law",
    "Report",
    "WHOLE",
    "assert_lawful",
    "check",
    "encoder_weights",
    *(law.slug for law in (*ALL, *ENCODER)),
]


def check(subject, only=None, seed=0):
    """Ask every law of something that attends.

    Equation: lawful ⇔ no law is broken  (chapter 14)

    Parameters
    ----------
    subject : callable or torch.nn.Module
        An attention function ``f(Q, K, V, mask=None)``, a multi-head function
        ``f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None)`` or an encoder called like
        `mha.encoder` or `mha.encoder_layer`, in NumPy or torch; a layer or encoder of
        `mha.nn`; a MultiheadAttention, TransformerEncoderLayer or TransformerEncoder of
        `torch.nn`; a member of `mha.zoo`; an `Adapter` around anything else. A module
        is never changed: its class is built anew in the sizes the laws need.
    only : iterable of Law or str, optional
        Ask these laws alone. By default it is asked `ALL`, and an encoder `ENCODER`
        too; the laws of attention are then asked of the attention in it, which is seen
        through norms and residuals.
    seed : int, default 0
        Fixes the inputs that are tried.

    Returns
    -------
    report : Report
        True when no law is broken. Prints as a table with the smallest failing example
        of each broken law, and names the wrong version of `mha.zoo` that behaves alike.

    Raises
    ------
    TypeError
        If `subject` is nothing that attends, with what is accepted.
    ValueError
        If `only` names no law.

    Examples
    --------
    >>> from mha import zoo
    >>> check(zoo.no_scale, only=["doubling_changes_nothing"]).holds
    True
    """
    subject = as_subject(subject)
    asked = laws_for([subject]) if only is None else chosen(only)
    findings = tuple(law.check(subject, seed) for law in asked)
    who = partial(lookalike, subject, findings)
    return Report(subject.name, findings, who, seed)


def assert_lawful(subject, except_=(), seed=0):
    """Raise AssertionError, with the report, if a law is broken.

    Equation: see `check`  (chapter 14)

    Parameters
    ----------
    subject : callable or torch.nn.Module
        See `check`.
    except_ : iterable of Law or str
        Laws that need not hold.
    seed : int, default 0
        Fixes the inputs that are tried.

    Raises
    ------
    AssertionError
        If a law is broken.

    Examples
    --------
    >>> from mha import multi_head_attention
    >>> assert_lawful(multi_head_attention)
    """
    subject = as_subject(subject)
    spared = {law.slug for law in chosen(except_)}
    asked = [law for law in laws_for([subject]) if law.slug not in spared]
    report = check(subject, asked, seed)
    if not report:
        raise AssertionError(f"{report!r}")


def laws_for(subjects):
    """Return the laws that are asked: the encoder's too, where one is an encoder."""
    encoders = any(as_subject(subject).kind == "encoder" for subject in subjects)
    return (*ALL, *ENCODER) if encoders else ALL


def chosen(laws):
    """Return the laws that `laws` names."""
    by_slug = {law.slug: law for law in (*ALL, *ENCODER)}
    found = []
    for law in [laws] if isinstance(laws, str | Law) else laws:
        if isinstance(law, Law):
            found.append(law)
        elif law in by_slug:
            found.append(by_slug[law])
        else:
            raise ValueError(
                f"no law is called {law!r}; there are {', '.join(by_slug)}"
            )
    return found

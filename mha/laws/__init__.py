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
"""

from mha.laws._attention import (
    dtype_is_kept,
    inputs_stay_untouched,
    key_order_is_free,
    outputs_follow_tokens,
    scores_are_not_symmetric,
    shifting_keys_changes_nothing,
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

__all__ = [
    "ALL",
    "Failure",
    "Finding",
    "Law",
    "Report",
    "assert_lawful",
    "check",
    *(law.slug for law in ALL),
]


def check(subject, only=None, seed=0):
    """Ask every law of something that attends.

    Equation: lawful ⇔ no law is broken  (chapter 14)

    Parameters
    ----------
    subject : callable or torch.nn.Module
        An attention function ``f(Q, K, V, mask=None)`` or a multi-head function
        ``f(X, W_Q, W_K, W_V, W_O, n_heads, mask=None)``, in NumPy or torch; a layer of
        `mha.nn`; a `torch.nn.MultiheadAttention`; a member of `mha.zoo`. Anything else
        needs one line: a function of one of the two kinds that calls it. A module is
        never changed: its class is built anew in the sizes the laws need.
    only : iterable of Law or str, optional
        Ask these laws alone.
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
    findings = tuple(law.check(subject, seed) for law in _chosen(only))
    return Report(subject.name, findings, lookalike(subject, findings), seed)


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
    spared = {law.slug for law in _chosen(except_)}
    report = check(subject, [law for law in ALL if law.slug not in spared], seed)
    if not report:
        raise AssertionError(f"{report!r}")


def _chosen(laws):
    """Return the laws that `laws` names, in the order of the book."""
    if laws is None:
        return ALL
    by_slug = {law.slug: law for law in ALL}
    chosen = []
    for law in [laws] if isinstance(laws, str | Law) else laws:
        if isinstance(law, Law):
            chosen.append(law)
        elif law in by_slug:
            chosen.append(by_slug[law])
        else:
            raise ValueError(
                f"no law is called {law!r}; there are {', '.join(by_slug)}"
            )
    return chosen

"""Members of the zoo, and the decorator that makes and registers them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import mha
from mha.zoo import _around
from mha.zoo._copies import Copies, Step

ENCODER_STEPS = (
    "layer_norm", "feed_forward", "add_and_norm", "encoder_layer", "encoder"
)  # fmt: skip
MEMBERS: list["Member"] = []  # in the order in which they were registered
SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
TRAINING = inspect.Parameter(
    "training", inspect.Parameter.KEYWORD_ONLY, default=True, annotation=bool
)


def called_like(step: Step, *more: inspect.Parameter) -> Callable[[Step], Step]:
    """Tell `inspect.signature` that a method is called like a step."""

    def put(method: Any) -> Step:
        known = inspect.signature(step).parameters.values()
        method.__signature__ = inspect.Signature([SELF, *known, *more])
        return method

    return put


class Member:
    """Compute multi-head attention, or an encoder, with one step replaced.

    It is called like `mha.multi_head_attention`, an encoder like `mha.encoder`, on
    NumPy arrays or torch tensors, through which gradients flow. A mask of 0 and 1 is
    read as False and True, and fewer heads of keys are shared by groups of queries.

    Attributes
    ----------
    name, wrong, seen, link : str
        Its name in `mha.zoo`, what was done wrong, and where it was seen in public; the
        link is empty where no issue is known.
    steps : dict of str to function
        The wrong step under the name of the step that it replaces, see `with_steps`.
    encoder, sometimes, on_tensors : bool
        Whether it is called like an encoder, whether plain calls do not show the
        mistake, and whether arrays do not show it.
    says : dict of str to int
        Sizes without which nothing shows it.

    Examples
    --------
    >>> from mha import zoo
    >>> zoo.softmax_over_queries
    zoo.softmax_over_queries: The softmax runs down the columns, over the queries.
    >>> print(zoo.softmax_over_queries.source)
    def softmax(x, axis=-1):
        return mha.softmax(x, axis=-2)
    """

    __module__ = "mha.zoo"

    def __init__(
        self,
        name: str,
        steps: Mapping[str, Step],
        wrong: str = "nothing",
        seen: str = "no public issue known",
        link: str = "",
        *,
        encoder: bool = False,
        sometimes: bool = False,
        on_tensors: bool = False,
        says: Mapping[str, int] | None = None,
    ) -> None:
        self.name, self.steps, self.encoder = name, dict(steps), encoder
        self.wrong, self.seen, self.link = wrong, seen, link
        self.sometimes, self.on_tensors = sometimes, on_tensors
        self.says = dict(says or {})
        self._copies = Copies(steps)
        self._whole = self._encoder if encoder else self._multi_head
        self.__signature__ = inspect.signature(self._whole)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return what this member takes for multi-head attention, or an encoder."""
        return self._whole(*args, **options)

    @called_like(mha.multi_head_attention)
    def _multi_head(self, *args: Any, **options: Any) -> Any:
        return self._copies.call(_around.multi_head, *args, **options)

    @called_like(mha.encoder, TRAINING)
    def _encoder(self, *args: Any, **options: Any) -> Any:
        return self._copies.call(_around.stack, *args, **options)

    @called_like(mha.scaled_dot_product_attention)
    def attention(self, *args: Any, **options: Any) -> Any:
        """Return what it takes for `mha.scaled_dot_product_attention`."""
        return self._copies.call(_around.attention, *args, **options)

    @called_like(mha.encoder_layer, TRAINING)
    def layer(self, *args: Any, **options: Any) -> Any:
        """Return what it takes for `mha.encoder_layer`.

        Encoders and their layers take `training` too, for norms that tell train mode
        from eval mode, which no correct one does.
        """
        return self._copies.call(_around.layer, *args, **options)

    @property
    def source(self) -> str:
        """The code of the wrong step, under the name of the right one."""
        return "\n\n\n".join(
            f"def {name}({mha.source(f).partition('def ')[2].partition('(')[2]}"
            for name, f in self.steps.items()
        )

    def __repr__(self) -> str:
        return f"zoo.{self.name}: {self.wrong}"

    def __reduce__(self) -> str:
        # There is one of each: copies and pickles lead back to it.
        return self.name


def registered(member: Member) -> Member:
    """Put a member into the zoo."""
    MEMBERS.append(member)
    return member


def seen(sentence: str) -> Callable[[Step], Step]:
    """Say of a wrong step where it was seen."""

    def put(f: Any) -> Step:
        f.seen = sentence
        return f

    return put


def bug(step: str, link: str = "", **facts: Any) -> Callable[[Step], Member]:
    """Register a function as the member of the zoo in which it replaces this step.

    Its docstring says what is wrong, `link` is an issue or a pull on GitHub, and the
    facts are those of a `Member`.
    """
    facts["encoder"] = step in ENCODER_STEPS
    facts["link"] = link and f"https://github.com/{link}"

    def put(f: Step) -> Member:
        if hasattr(f, "seen"):
            facts["seen"] = f.seen
        return registered(Member(f.__name__, {step: f}, f.__doc__ or "", **facts))

    return put

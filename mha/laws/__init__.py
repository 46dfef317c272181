# ruff: noqa: F403, F405 - each module says in its __all__ what is public
"""What must be true of any attention: laws that a wrong version breaks.

Wrong attention trains to 100 %, so a loss curve proves nothing. A law is a short
executable statement, true of correct attention and false of some wrong one.

>>> from mha import laws, scaled_dot_product_attention
>>> bool(laws.check(scaled_dot_product_attention))
True

A report shows the smallest failing example of each broken law, and says which laws were
not asked and why. In a test of your own `assert_lawful` does it in one line, and from a
shell ``python -m mha.laws my_package.layers:my_layer``.

What `check` cannot know is said in a word of `Conventions`, and `Adapter` makes
checkable what `check` does not know. What a layer changes on purpose is declared as a
design, such as ``design=[rotary(500000), window(4096)]``, and then the laws compare
with correct attention of this design.
"""

from typing import Any

from mha.laws.adapter import *
from mha.laws.designs import *
from mha.laws.judge import *
from mha.laws.report import *
from mha.laws.stack import *
from mha.laws.trial import *
from mha.laws.words import *

# Each law stands in its module, and goes by its own name here.
globals().update({law.slug: law for law in (*ALL, *ENCODER, *DESIGN)})


def __getattr__(name: str) -> Any:
    raise AttributeError(f"no law is called {name!r}; mha.laws.ALL lists them")

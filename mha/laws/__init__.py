# ruff: noqa: F403 - each module says in its __all__ what is public
"""What must be true of any attention: laws that a wrong version breaks.

Wrong attention trains to 100 %, so a loss curve proves nothing. A law is a short
executable statement, true of correct attention and false of some wrong one.

>>> from mha import laws, scaled_dot_product_attention
>>> bool(laws.check(scaled_dot_product_attention))
True

A report shows the smallest failing example of each broken law, and says which laws were
not asked and why. It names a wrong version of `mha.zoo` where that gives the same wrong
numbers. In a test of your own, one line does it::

    def test_my_layer_satisfies_the_laws():
        laws.assert_lawful(MyLayer(8, 2))

As a fixture it is there with ``pytest_plugins = ["mha.testing"]`` in conftest.py.

What `check` cannot know is said in a word of `Conventions`, for example
``mask_true="hide"``. A design that breaks a law on purpose is declared, for example by
``breaks=["outputs_follow_tokens"], because="rotary positions"``. `Adapter` makes
checkable what `check` does not know.

From a shell, ``python -m mha.laws my_package.layers:my_layer`` prints the report, and
``--list`` prints all laws.
"""

from mha.laws.adapter import *
from mha.laws.all import *
from mha.laws.calls import *
from mha.laws.encoders import *
from mha.laws.judge import *
from mha.laws.layers import *
from mha.laws.masks import *
from mha.laws.report import *
from mha.laws.stack import *
from mha.laws.trial import *
from mha.laws.weights import *
from mha.laws.words import *

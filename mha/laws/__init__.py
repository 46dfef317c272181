# ruff: noqa: F403 - each module says in its __all__ what is public
"""What must be true of any attention: laws that a wrong version breaks.

Wrong attention trains to 100 % (chapter encoder), so a loss curve proves nothing. A law
is a short executable statement, true of correct attention and false of some wrong one.

>>> from mha import laws, scaled_dot_product_attention
>>> bool(laws.check(scaled_dot_product_attention))
True

In a test of your own, one line does it::

    from mha import laws
    def test_my_layer_satisfies_the_laws():
        laws.assert_lawful(my_layer)

From a shell, ``python -m mha.laws my_package.layers:my_layer`` does it, and `Adapter`
makes checkable what `check` does not know.
"""

from mha.laws._all import *
from mha.laws._attention import *
from mha.laws._calls import *
from mha.laws._check import *
from mha.laws._encoder import *
from mha.laws._law import *
from mha.laws._layers import *
from mha.laws._masks import *
from mha.laws._matrix import *
from mha.laws._report import *
from mha.laws._weights import *
from mha.laws.subjects.adapter import *
from mha.laws.subjects.conventions import *
from mha.laws.subjects.encoder import *

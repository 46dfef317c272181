"""The examples of `mha.pretrained` run where the model is, and skip elsewhere."""

import pytest

from mha import _minilm


@pytest.fixture(autouse=True)
def model_at_hand(request):
    """Skip before an example would ask the network for the model."""
    about_the_model = request.node.name.startswith("mha.pretrained")
    if about_the_model and _minilm.find_here() is None:
        pytest.skip(_minilm.WAYS)

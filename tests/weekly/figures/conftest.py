"""The browser and its windows, as the tests of the pages have them."""

from tests.browser.conftest import *  # noqa: F403, its fixtures and hooks
from tests.browser.test_figures import show as show

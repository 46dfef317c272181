"""The built book and the browser, as the daily tests of the pages have them."""

from tests.browser.conftest import (  # noqa: F401
    chromium,
    html,
    open_page,
    site,
    window,
)
from tests.browser.test_figures import show  # noqa: F401

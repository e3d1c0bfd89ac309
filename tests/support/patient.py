"""Expectations of pages that are looked at ten times a second.

Playwright looks less and less often the more patience it is asked for, in the end twice a second: of pages that change
within moments, a test would miss most of them by half a second.
"""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page
from playwright.sync_api import expect as look

PATIENCE = 90_000  # milliseconds: machines that run tests are busy
_ROUND = 2_400  # the longest for which it is looked that often


class Expectation:
    """What is expected of a page or a part of it; every assertion of Playwright is one of its methods.

    Args:
        assertions: of Playwright.
    """

    def __init__(self, assertions: Any) -> None:
        self._assertions = assertions

    def __getattr__(self, name: str) -> Callable[..., None]:
        check = getattr(self._assertions, name)

        def wait(*arguments: Any, **options: Any) -> None:
            for _ in range(PATIENCE // _ROUND):
                try:
                    check(*arguments, timeout=_ROUND, **options)
                except AssertionError as error:
                    last = error
                else:
                    return
            raise last

        return wait


def expect(actual: Page | Locator) -> Expectation:
    """Returns what may be expected, as Playwright's function of this name does."""
    return Expectation(look(actual))

import sys

import pytest

from candor.core.errors import InputError
from candor.core.optional import needing_packages


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    named = pytest.raises(InputError, match="growing trees needs the package lightgbm")
    with named as caught, needing_packages("growing trees", extra="trees"):
        import lightgbm
    assert caught.value.hint == "pip install 'candor-forecast[trees]'"
    with pytest.raises(InputError, match=r"^here: ") as caught, needing_packages("it", packages="a b", where="here"):
        import lightgbm  # noqa: F401
    assert caught.value.hint == "pip install a b"


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), needing_packages("a division", extra="none"):
        raise ZeroDivisionError

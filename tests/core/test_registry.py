"""Names lead to entries, and unknown names to the nearest known ones."""

import pytest

from candor.core.errors import InputError
from candor.core.registry import Registry


def test_entries_are_found_by_name_in_sorted_order() -> None:
    shelf: Registry[int] = Registry("number")
    shelf.register("two")(2)
    assert shelf.register("one")(1) == 1
    assert shelf.get("two") == 2
    assert list(shelf) == shelf.names() == ["one", "two"]
    assert "one" in shelf
    assert "three" not in shelf


def test_an_unknown_name_lists_the_nearest() -> None:
    shelf: Registry[int] = Registry("number")
    for name in ("metr-la", "pems-bay", "klamath-daily"):
        shelf.register(name)(0)
    with pytest.raises(InputError, match="did you mean metr-la") as caught:
        shelf.get("metrla")
    assert "no number called 'metrla'" in str(caught.value)
    with pytest.raises(InputError, match="known: klamath-daily, metr-la, pems-bay"):
        shelf.get("xyz")


def test_a_name_is_taken_only_once() -> None:
    shelf: Registry[int] = Registry("number")
    shelf.register("one")(1)
    with pytest.raises(ValueError, match="twice"):
        shelf.register("one")(2)


def test_an_announced_entry_is_imported_when_it_is_asked_for() -> None:
    shelf: Registry[object] = Registry("thing")
    shelf.announce("absent", "candor.no_such_module")
    assert "absent" in shelf and shelf.names() == ["absent"]
    with pytest.raises(ModuleNotFoundError):
        shelf.get("absent")

"""Settings refuse what they do not know, and say so in plain words."""

import pytest

from candor.core.errors import InputError
from candor.core.settings import Settings, parse_overrides, parse_settings, read_yaml


class Example(Settings):
    """Two settings."""

    steps: int
    name: str = "x"


def test_settings_are_frozen() -> None:
    example = parse_settings(Example, {"steps": 3}, "here")
    with pytest.raises(ValueError, match="frozen"):
        example.steps = 4  # type: ignore[misc]
    assert example.steps == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"steps": 1, "stepz": 2}, "stepz"),
        ({}, "steps"),
        ({"steps": "many"}, "steps"),
        ([1], "content"),
        (None, "content"),
    ],
)
def test_wrong_settings_name_the_key_and_the_known_ones(content: object, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        parse_settings(Example, content, "here")
    assert caught.value.where == "here"
    assert "steps, name" in caught.value.hint


def test_overrides_are_read_as_yaml() -> None:
    pairs = ["a=1", "b=2.5", "c=text", "d=[1, 2]", "e=true", "f=", "g=x=y"]
    expected = {"a": 1, "b": 2.5, "c": "text", "d": [1, 2], "e": True, "f": None, "g": "x=y"}
    assert parse_overrides(pairs) == expected


@pytest.mark.parametrize("content", [{"steps": 10**400}, {"steps": [1, -(10**18)]}, {"steps": {"steps": 10**5000}}])
def test_a_number_out_of_all_proportion_is_refused(content: object) -> None:
    with pytest.raises(InputError, match=r"^here: (steps\.)?steps: a whole number of more than 18 digits"):
        parse_settings(Example, content, "here")
    assert parse_settings(Example, {"steps": 10**18 - 1}, "here").steps == 10**18 - 1


NOT_SETTINGS = ["horizon", "=3", "a=[1", "a=!!python/object/apply:os.system ['true']"]
NOT_VALUES = ["last=2020-02-30", "a=0x_", f"a={5000 * '9'}"]


@pytest.mark.parametrize("pair", [*NOT_SETTINGS, *NOT_VALUES], ids=lambda pair: pair[:20])
def test_what_is_not_a_setting_is_refused(pair: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_overrides([pair])
    assert refused.value.hint.startswith("write ") and len(refused.value.what) < 150


@pytest.mark.parametrize("text", ["- 1", "a: [", "just text", ""])
def test_yaml_that_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="preset x"):
        read_yaml(text, "preset x")

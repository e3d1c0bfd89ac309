"""Settings that cannot change, refuse unknown keys, and say in plain words what is wrong with them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from candor.core.errors import InputError

Kind = TypeVar("Kind")
MOST_DIGITS = 18
"""Of a whole number that people write: arrays are counted with numbers that have no more."""
NOT_YAML = (yaml.YAMLError, ValueError, RecursionError)
"""What reading YAML raises; the second at dates that no calendar has and at thousands of digits."""
_MOST_SHOWN = 60
STRICT = ConfigDict(
    frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True, arbitrary_types_allowed=True
)


class Settings(BaseModel):
    """The base of all settings."""

    model_config = STRICT


def parse_settings(kind: type[Kind], content: Any, where: str) -> Kind:
    """Return settings of the given kind from plain content, or say which keys are wrong and why."""
    if too_large := ", ".join(_too_large(content)):
        what = f"{too_large}: a whole number of more than {MOST_DIGITS} digits is nothing that can be counted with"
        raise InputError(what, where=where, hint="give a smaller number")
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(part) for part in problem['loc']) or 'content'}: {problem['msg'].lower()}"
            for problem in error.errors(include_url=False)
        ]
        fields: Iterable[str] = getattr(kind, "model_fields", getattr(kind, "__dataclass_fields__", ()))
        raise InputError("; ".join(problems), where=where, hint=f"known settings: {', '.join(fields)}") from None


def _too_large(content: Any, name: str = "") -> Iterator[str]:
    """Yield the names of whole numbers that are out of all proportion."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _too_large(value, f"{name}.{key}" if name else str(key))
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _too_large(value, name)
    elif isinstance(content, int) and abs(content) >= 10**MOST_DIGITS:
        yield name or "content"


def flattened(content: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return settings within settings under one name each, such as `training.epochs`."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{before}{key}"
        flat |= flattened(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat


def parse_overrides(pairs: Sequence[str]) -> dict[str, Any]:
    """Return settings written as `key=value` on the command line; values are read as YAML."""
    overrides: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{pair!r} is not a setting", hint="write settings as key=value, e.g. horizon=24")
        try:
            overrides[key.strip()] = yaml.safe_load(value)
        except NOT_YAML:
            shown = value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}..."
            raise InputError(
                f"the value of {key!r} cannot be read: {shown!r}",
                hint="write a number, a word, a date, true, false, or a list such as [1,2] with both its brackets",
            ) from None
    return overrides


def read_yaml(text: str, where: str) -> Mapping[str, Any]:
    """Return the mapping that a YAML text holds."""
    try:
        content = yaml.safe_load(text)
    except NOT_YAML as error:
        raise InputError(f"this is not readable YAML ({str(error).splitlines()[0]})", where=where) from None
    if not isinstance(content, dict):
        raise InputError("this is not a mapping of settings", where=where)
    return content

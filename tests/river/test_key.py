"""The key of the USGS goes where it is meant to go, and nowhere else."""

import made_basin
import pytest

from candor.river.build import build_basin

RULES = made_basin.RULES.model_copy(update={"end": "2021-05-03"})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_USGS_PAT", "my-key")


def keys_by_service(usgs) -> dict[str, set[str | None]]:
    """Returns the keys that came with the requests to each of the services."""
    found: dict[str, set[str | None]] = {}
    for address, headers in zip(usgs.requests, usgs.headers, strict=True):
        assert "my-key" not in address
        lowered = {name.lower(): text for name, text in headers.items()}
        found.setdefault("nldi" if "/nldi/" in address else "waterdata", set()).add(lowered.get("x-api-key"))
    return found


def test_the_key_comes_with_every_request_to_water_data_and_with_none_to_the_index(usgs, client, monkeypatch) -> None:
    made_basin.fill(usgs)

    def is_local(url: object) -> bool:
        return "127.0.0.1" in str(url)

    for module in ("credentials", "transport.http"):  # the client knows its host by name, and this is another one
        monkeypatch.setattr(f"dataretrieval.{module}.accepts_api_key", is_local)
    basin = build_basin(RULES, client)
    assert keys_by_service(usgs) == {"waterdata": {"my-key"}, "nldi": {None}}
    assert "my-key" not in str(basin.panel.provenance)
    kept = [path.read_bytes() for path in client.cache.folder.rglob("*") if path.is_file()]
    assert kept and not any(b"my-key" in content for content in kept)


def test_a_host_that_is_not_water_data_never_sees_the_key(usgs, client) -> None:
    made_basin.fill(usgs)
    build_basin(RULES, client)
    assert keys_by_service(usgs) == {"waterdata": {None}, "nldi": {None}}

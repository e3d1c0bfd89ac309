"""The official lengths of flowlines, as NHDPlus states them (lengthkm), in kilometres.

They come from the collection `nhdflowline_network` of a USGS service that speaks the same language (OGC API) as the one
of the readings, so that the same client asks it; it stands on the host of the NLDI. A flowline whose length it does not
tell is measured by its geometry instead.
"""

import json
import math
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from candor.data.findings import Findings
from candor.river.asking import Asker, Fetch, ServiceError
from candor.river.cache import Question
from candor.river.pages import watched_client

COLLECTION = "nhdflowline_network"
_PATH = "/fabric/pygeoapi"
_AT_ONCE = 400  # flowlines in one question; the service sends 500 on one page


def official_lengths(asker: Asker, comids: Iterable[str], findings: Findings) -> dict[str, float]:
    """Returns the lengths of flowlines in kilometres by their ids, without those that the service does not tell.

    Where it does not answer, what it said before counts, however old it is: official lengths hardly ever change.
    """
    numbers = sorted(int(comid) for comid in comids)
    asked = [_ask(numbers[first : first + _AT_ONCE]) for first in range(0, len(numbers), _AT_ONCE)]
    try:
        answers = asker.ask_all(asked, "looking up lengths of rivers")
    except ServiceError as error:
        answers = asker.take_kept(question for question, _ in asked)
        instead = (
            "those that are kept were taken" if len(answers) == len(asked) else "it was measured where none are kept"
        )
        findings.warning(
            f"the official lengths of the river could not be had, and {instead}: {error.what}",
            where=error.where,
            hint="build again later: the rest is kept",
        )
    rows = [row for answer in answers for row in json.loads(answer.content)]
    return {str(row["comid"]): row["lengthkm"] for row in rows if row["lengthkm"] and row["lengthkm"] > 0}


def _ask(numbers: list[int]) -> tuple[Question, Fetch]:
    """Returns the question for the lengths of some flowlines, and how to ask it."""
    arguments: dict[str, Any] = {"properties": ["comid", "lengthkm"], "skip_geometry": True, "limit": _AT_ONCE}
    wanted = {"op": "in", "args": [{"property": "comid"}, numbers]}

    def fetch() -> tuple[bytes, str, *tuple[str, ...]]:
        from dataretrieval import configuration, nldi
        from dataretrieval.exceptions import DataRetrievalError
        from dataretrieval.ogc import get_ogc_data

        host = urlsplit(configuration.base_url(adapter="nldi", default=nldi.NLDI_API_BASE_URL))
        with watched_client() as pages:
            frame, metadata = get_ogc_data(
                arguments,
                COLLECTION,
                "feature_id",
                base_url=f"{host.scheme}://{host.netloc}{_PATH}",
                spatial=True,
                cql_body=json.dumps(wanted),
                adapter="nldi",
            )
        if not {"comid", "lengthkm"} <= set(frame.columns):
            raise DataRetrievalError("it tells no lengths")
        rows = zip(frame["comid"].tolist(), frame["lengthkm"].tolist(), strict=True)
        content = [{"comid": int(comid), "lengthkm": _known(length)} for comid, length in rows]
        return json.dumps(content).encode(), metadata.url, *pages[1:]

    return Question("nhdplus", COLLECTION, arguments | {"cql": wanted}), fetch


def _known(length: object) -> float | None:
    """Returns a length that is a number, and None for whatever else stands in its place."""
    return float(length) if isinstance(length, int | float) and math.isfinite(length) else None

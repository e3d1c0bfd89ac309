"""The one shape of all errors: `{"error": {"code", "what", "where", "hint"}}`."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from candor.core.errors import InputError

_MOST_PROBLEMS = 5
_CODES = {404: "not_found", 405: "method_not_allowed", 406: "not_acceptable", 415: "wrong_media_type"}


class RefusedError(InputError):
    """A request that is answered with a status of 400 or more.

    Args:
        status: the HTTP status.
        code: identifies the kind of error, in snake_case.
        what: what was found, and what was expected instead.
        where: the part of the request it was found in.
        hint: what the client can do about it.
        headers: further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        *,
        where: str = "",
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    def response(self) -> "StrictJSONResponse":
        """Returns the response to the client."""
        return StrictJSONResponse(error_content(self.code, self), self.status, self.headers)


class StrictJSONResponse(JSONResponse):
    """JSON in ASCII, so that any text of a request can be sent back; NaN is refused."""

    def render(self, content: Any) -> bytes:
        """Returns the bytes of the content."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def error_content(code: str, error: InputError) -> dict[str, Any]:
    """Returns an error in the shape that all errors have."""
    return {"error": {"code": code, "what": error.what, "where": error.where, "hint": error.hint}}


def add_error_handlers(app: FastAPI) -> None:
    """Gives every error of the application and of its framework the one shape."""
    app.add_exception_handler(InputError, _answer_input_error)
    app.add_exception_handler(RequestValidationError, _answer_wrong_shape)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_bug)


def _answer_input_error(request: Request, error: Exception) -> StrictJSONResponse:
    assert isinstance(error, InputError)
    refusal = error if isinstance(error, RefusedError) else RefusedError(
        400, "bad_input", error.what, where=error.where, hint=error.hint
    )  # fmt: skip
    return refusal.response()


def _answer_wrong_shape(request: Request, error: Exception) -> StrictJSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    shown = [f"{_place(problem['loc'])}: {problem['msg']}" for problem in problems[:_MOST_PROBLEMS]]
    more = len(problems) - len(shown)
    what = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    where = str(problems[0]["loc"][0]) if problems and problems[0]["loc"] else "request"
    hint = "the shape of requests stands in /v1/openapi.json; a body is JSON with the header content-type"
    return RefusedError(422, "wrong_shape", what, where=where, hint=hint).response()


def _place(path: tuple[Any, ...]) -> str:
    return ".".join(str(part)[:60] for part in path[1:] or path)


def _answer_http_error(request: Request, error: Exception) -> StrictJSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, f"http_{error.status_code}")
    what = {
        404: "there is nothing under this address",
        405: f"{request.method} is not possible here",
    }.get(error.status_code, str(error.detail))
    hint = "the addresses stand in /v1/openapi.json" if error.status_code in {404, 405} else ""
    path = request.url.path[:200]
    return RefusedError(error.status_code, code, what, where=path, hint=hint, headers=error.headers).response()


def _answer_bug(request: Request, error: Exception) -> StrictJSONResponse:
    hint = "this is a bug in candor, not in the request; the log of the service says more"  # uvicorn logs the traceback
    return RefusedError(500, "internal", "something went wrong inside the service", hint=hint).response()

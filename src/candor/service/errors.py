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


class StrictJSONResponse(JSONResponse):
    """JSON in ASCII, so that any text of a request can be sent back; NaN is refused."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of the content."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class RefusedError(InputError):
    """A request that is answered with a status of 400 or more, and a code in snake_case for the kind of error."""

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

    def response(self) -> StrictJSONResponse:
        """Return the response to the client."""
        content = {"code": self.code, "what": self.what, "where": self.where, "hint": self.hint}
        return StrictJSONResponse({"error": content}, self.status, self.headers)


def add_error_handlers(app: FastAPI) -> None:
    """Give every error of the application and of its framework the one shape."""
    for kind in (InputError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, lambda request, error: _refusal(request, error).response())


def _refusal(request: Request, error: Exception) -> RefusedError:
    match error:
        case RefusedError():
            return error
        case InputError():
            return RefusedError(400, "bad_input", error.what, where=error.where, hint=error.hint)
        case RequestValidationError():
            return _wrong_shape(error)
        case HTTPException(status_code=status):
            code, what, hint = _CODES.get(status, f"http_{status}"), str(error.detail), ""
            if status in {404, 405}:
                is_absent = status == 404
                what = "there is nothing under this address" if is_absent else f"{request.method} is not possible here"
                hint = "the addresses stand in /v1/openapi.json"
            return RefusedError(status, code, what, where=request.url.path[:200], hint=hint, headers=error.headers)
    hint = "this is a bug in candor, not in the request; the log of the service says more"  # uvicorn logs the traceback
    return RefusedError(500, "internal", "something went wrong inside the service", hint=hint)


def _wrong_shape(error: RequestValidationError) -> RefusedError:
    problems = error.errors()
    shown = [f"{_place(problem['loc'])}: {problem['msg']}" for problem in problems[:_MOST_PROBLEMS]]
    more = len(problems) - len(shown)
    what = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    where = str(problems[0]["loc"][0]) if problems and problems[0]["loc"] else "request"
    hint = "the shape of requests stands in /v1/openapi.json; a body is JSON with the header content-type"
    return RefusedError(422, "wrong_shape", what, where=where, hint=hint)


def _place(path: tuple[Any, ...]) -> str:
    return ".".join(str(part)[:60] for part in path[1:] or path)

"""`/` and `/static`: the page and its files."""

from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


def page_files() -> dict[str, Path]:
    """Returns the files that are served, by their address under /static; no other file can be requested."""
    found = {
        str(path.relative_to(_FOLDER).as_posix()): path
        for path in _FOLDER.rglob("*")
        if path.is_file() and path.suffix in _TYPES
    }
    plotly = find_spec("plotly")
    if plotly is not None and plotly.origin is not None:
        found["plotly.min.js"] = Path(plotly.origin).parent / "package_data" / "plotly.min.js"
    return found


def page_routes() -> APIRouter:
    """Returns the routes of the page and its files."""
    router, files = APIRouter(include_in_schema=False), page_files()

    @router.get("/")
    async def index(request: Request) -> Response:
        return _send("index.html", request)

    @router.get("/static/{path:path}")
    async def file(path: str, request: Request) -> Response:
        return _send(path, request)

    def _send(name: str, request: Request) -> Response:
        if name not in files or not files[name].is_file():
            raise HTTPException(404)
        path = files[name]
        # Revalidated each time and sent only if changed, so that files of two versions never mix.
        caching = {"Cache-Control": "no-cache"}
        sent = FileResponse(path, media_type=_TYPES[path.suffix], headers=caching, stat_result=path.stat())
        if request.headers.get("if-none-match") == sent.headers["etag"]:
            return Response(status_code=304, headers=caching | {"ETag": sent.headers["etag"]})
        return sent

    return router

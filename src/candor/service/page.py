"""`/` and `/static`: the page and its files."""

from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def page_files() -> dict[str, Path]:
    """Return the files that are served, by their address under /static; no other file can be requested."""
    folder = Path(__file__).parent / "static"
    found = {path.name: path for path in folder.iterdir() if path.suffix in _TYPES}
    plotly = find_spec("plotly")
    if plotly is not None and plotly.origin is not None:
        found["plotly.min.js"] = Path(plotly.origin).parent / "package_data" / "plotly.min.js"
    return found


def page_routes() -> APIRouter:
    """Return the routes of the page and its files."""
    router, files = APIRouter(include_in_schema=False), page_files()

    @router.get("/")
    async def index(request: Request) -> Response:
        return await file("index.html", request)

    @router.get("/static/{path:path}")
    async def file(path: str, request: Request) -> Response:
        if path not in files or not files[path].is_file():
            raise HTTPException(404)
        # Revalidated each time and sent only if changed, so that files of two versions never mix.
        caching, kind = {"Cache-Control": "no-cache"}, _TYPES[files[path].suffix]
        sent = FileResponse(files[path], media_type=kind, headers=caching, stat_result=files[path].stat())
        if request.headers.get("if-none-match") == sent.headers["etag"]:
            return Response(status_code=304, headers=caching | {"ETag": sent.headers["etag"]})
        return sent

    return router

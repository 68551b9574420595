"""Serves the dashboard's files from this process, with the settings of this server."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from consilium_chain.deploying.address_book import Deployment
from fastapi import FastAPI, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from consilium_server.api.problems import Problem
from consilium_server.config import ApiSettings

BUILT = Path(__file__).parent.parent / "dashboard"  # by `make dashboard`; part of the package
FOR_GOOD = "public, max-age=31536000, immutable"
# Of `dashboard/src/app.tsx`. People type these addresses without the #.
PAGES = (
    "tasks", "market", "models", "ensembles", "nodes", "accounts", "portfolio", "desk", "propose", "wallet", "search",
    "told",
)  # fmt: skip
AGAIN = "no-cache"  # browsers keep it, and revalidate it at each use


def built() -> Path | None:
    """Folder of the dashboard in this installation; None if it was not built."""
    return BUILT if (BUILT / "index.html").is_file() else None


def connections(settings: ApiSettings) -> str:
    """Origins that a page may connect to (`connect-src` of the content security policy)."""
    allowed = ["'self'"]
    if settings.public_chain_url is not None:
        parts = urlsplit(settings.public_chain_url)
        allowed.append(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    return " ".join([*allowed, *settings.prediction_servers])


def serve(app: FastAPI, folder: Path, deployment: Deployment, settings: ApiSettings) -> None:
    """Adds the dashboard's files to the app, after all routes that the app has already."""

    example_task = settings.example_task

    def config(request: Request) -> Response:
        contracts = {name: getattr(deployment, name) for name in ("tasks", "staking", "token", "model_shares")}
        return JSONResponse(
            {
                "chain_id": deployment.chain_id,
                "chain_url": settings.public_chain_url,
                "first_block": deployment.first_block,
                "blobs": deployment.blobs,
                "example": example_task is not None,
                "explorer": settings.explorer,
                "prediction_servers": list(settings.prediction_servers),
                "contracts": contracts,
            },
            headers={"Cache-Control": AGAIN},
        )

    def example(request: Request) -> Response:
        if example_task is None:
            raise Problem("not-found", "this server has no example of a task file")
        return FileResponse(example_task, media_type="text/plain", headers={"Cache-Control": AGAIN})

    app.add_route("/config.json", config, include_in_schema=False)
    app.add_route("/example.toml", example, include_in_schema=False)
    for name in PAGES:
        for path in (f"/{name}", f"/{name}/{{rest:path}}"):
            app.add_route(path, _to_page, include_in_schema=False)
    app.mount("/", _Files(directory=folder, html=True))


def _to_page(request: Request) -> Response:
    """Redirects to the page's own address, which has the path after a #. Relative, because a proxy may add a prefix."""
    url = request.url
    up = "../" * (url.path.count("/") - 1) or "./"
    return RedirectResponse(f"{up}#{url.path}" + (f"?{url.query}" if url.query else ""))


class _Files(StaticFiles):
    """Files in `assets` have a hash of their content in the name, so that browsers can keep them."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = FOR_GOOD if Path(full_path).parent.name == "assets" else AGAIN
        return response

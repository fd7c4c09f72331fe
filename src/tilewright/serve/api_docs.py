"""The description of the API at `/docs`, for reading in a browser without a network.

The package `fastapi-offline` ships the files of Swagger UI, which FastAPI would have a browser
fetch from another host.
"""

from __future__ import annotations

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles

FILES = "/docs/static"
"""Path of the files of Swagger UI; they hold no data of any client."""


def add_docs(app: FastAPI) -> None:
    """Add the page and its files."""
    folder = Path(fastapi_offline.__file__).with_name("static")
    app.mount(FILES, StaticFiles(directory=folder), name="docs")
    app.add_api_route("/docs", _page, include_in_schema=False)


async def _page() -> Response:
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="tilewright API",
        swagger_js_url=f"{FILES}/swagger-ui-bundle.js",
        swagger_css_url=f"{FILES}/swagger-ui.css",
        swagger_favicon_url=f"{FILES}/favicon.png",
    )

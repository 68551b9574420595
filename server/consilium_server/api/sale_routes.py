"""Routes under /v1/models and /v1/ensembles: models for sale. Lists are in `sale_reads` and `ensemble_reads`, exports
are here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fastapi import Request, Response

from consilium_server.api import ensemble_reads, sale_reads
from consilium_server.api.context import Service
from consilium_server.api.reading import At
from consilium_server.api.routing import ONE, READ, FromReader, Reader, Shared, is_known, media
from consilium_server.api.schemas import TaskNumber

ROUTERS = (sale_reads.sales,)
_CSV = media("a header, and a line for each", "text/csv", {"type": "string"})


@sale_reads.sales.get(
    "/models.csv", operation_id="exportSoldModels", summary="Models for sale as CSV (RFC 4180)",
    response_class=Response, responses=_CSV | READ,
)  # fmt: skip
async def export_models(
    request: Request, reader: FromReader, service: Shared, q: sale_reads.Searched = None
) -> Response:
    return await _exported(request, reader, service, partial(sale_reads.models_csv, q=q), "consilium-models.csv")


@sale_reads.sales.get(
    "/ensembles.csv", operation_id="exportEnsembles", summary="Ensembles of models as CSV (RFC 4180)",
    response_class=Response, responses=_CSV | READ,
)  # fmt: skip
async def export_ensembles(
    request: Request, reader: FromReader, service: Shared, q: sale_reads.Searched = None
) -> Response:
    read = partial(ensemble_reads.ensembles_csv, q=q)
    return await _exported(request, reader, service, read, "consilium-ensembles.csv")


@sale_reads.sales.get(
    "/models/{task}/earnings.csv", operation_id="exportEarnings",
    summary="Parts and earnings of a model's holders as CSV (RFC 4180)", response_class=Response, responses=_CSV | ONE,
)  # fmt: skip
async def export_earnings(request: Request, reader: FromReader, service: Shared, task: TaskNumber) -> Response:
    name = f"consilium-model-{task}-earnings.csv"
    return await _exported(request, reader, service, partial(sale_reads.earnings_csv, task=task), name)


async def _exported(
    request: Request, reader: Reader, service: Service, read: Callable[[At], str], name: str
) -> Response:
    headers, text = await service.reads.page(lambda at: (reader.headers(at.head), read(at)))
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, headers=headers | disposition, media_type="text/csv")

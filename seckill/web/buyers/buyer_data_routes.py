"""The routes of one buyer's data."""

from seckill.domain.operator import Role
from seckill.web.buyers import buyer_data, buyer_data_schemas
from seckill.web.route import Route

BUYER_DATA_ROUTES = (
    Route(
        method="POST",
        path="/v1/admin/buyers/export",
        summary="Everything that is held about one buyer",
        handler=buyer_data.export_buyer,
        who="operator",
        role=Role.OPERATOR,
        body=buyer_data_schemas.OneBuyer,
        answer=buyer_data_schemas.BuyerFile,
        problems=(400, 413, 422, 503),
    ),
    Route(
        method="POST",
        path="/v1/admin/buyers/erase",
        summary="Put a pseudonym in a buyer's place, everywhere and for good; 409 while something of theirs may move",
        handler=buyer_data.erase_buyer,
        who="operator",
        role=Role.ADMIN,
        body=buyer_data_schemas.OneBuyer,
        answer=buyer_data_schemas.ErasedBuyer,
        problems=(400, 409, 413, 422, 503),
    ),
)

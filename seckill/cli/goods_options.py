"""Options that say what a sale sells."""

import json
from dataclasses import dataclass, fields
from typing import Annotated, Any

from cyclopts import Parameter

from seckill.cli.parameters import whole
from seckill.errors import SeckillError


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GoodsOptions:
    external_id: Annotated[str | None, Parameter(help="The shop's own id for it.")] = None
    metadata: Annotated[str | None, Parameter(help="Facts of the shop's own: a JSON object of at most 4 KB.")] = None
    description: Annotated[str | None, Parameter(help="Text for its page, plain or in simple Markdown.")] = None
    images: Annotated[
        list[str] | None, Parameter(name="--image", negative=(), help="Address of a picture; the first is the cover.")
    ] = None
    list_price_cents: Annotated[int | None, Parameter(converter=whole, help="The usual price of one unit.")] = None
    terms_url: Annotated[str | None, Parameter(help="Address of its terms.")] = None
    delivery: Annotated[str | None, Parameter(help="How and when it is delivered.")] = None
    return_url: Annotated[str | None, Parameter(help="Where buyers go back to the shop.")] = None

    def given(self) -> dict[str, Any]:
        """Returns the given options under their names in the API."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in named.items() if value is not None}
        if self.metadata is not None:
            given["metadata"] = _object(self.metadata)
        return given


NO_OPTIONS = GoodsOptions()


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise SeckillError('--metadata: give a JSON object, such as \'{"sku": "K-1"}\'.')
    return value

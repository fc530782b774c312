"""Pictures that operators upload and everyone sees."""

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.picture import MEDIA_TYPE, BadPicture, digest_in
from seckill.errors import StartError
from seckill.web.context import context
from seckill.web.problems import HttpProblem, invalid, not_found
from seckill.web.requests.uploads import IMAGES, pieces
from seckill.web.responses import json_response
from seckill.web.sales.upload_schemas import UploadedImage

# The content of an address never changes.
_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    # For the shop's own pages, too.
    "Cross-Origin-Resource-Policy": "cross-origin",
}


async def upload_image(request: Request) -> Response:
    ctx = context(request)
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise invalid("Content-Type", "send the picture itself as the body, and no form")
    content = b"".join([piece async for piece in pieces(request.receive, IMAGES)])
    if not content:
        raise invalid("body", "is empty: send the picture itself")
    try:
        picture = await ctx.pictures.upload(content)
    except BadPicture as error:
        raise invalid("body", str(error)) from None
    except StartError as error:
        raise HttpProblem(503, "no_pictures", str(error)) from None
    uploaded = UploadedImage(url=picture.address, width=picture.width, height=picture.height)
    return json_response(uploaded, 201, {"Location": picture.address, "Cache-Control": "no-store"})


async def show_image(request: Request) -> Response:
    digest = digest_in(request.url.path)
    picture = None if digest is None else await context(request).pictures.find(digest)
    if picture is None:
        raise not_found()
    headers = _HEADERS | {"ETag": f'"{picture.digest}"'}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    return Response(picture.content, 200, headers, MEDIA_TYPE)

"""Processes pictures with Pillow. Their type is recognised by content, never by name. They are made smaller and written
anew, so that nothing that a camera or an attacker has added to the picture is passed on."""

import hashlib
import io
import warnings
from typing import TYPE_CHECKING

from seckill.domain.picture import PIXELS_MAX, SIDE_MAX, BadPicture, Picture
from seckill.extras import explained

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "WEBP")
QUALITY = 85
_PNG_END = b"\0\0\0\0IEND\xaeB`\x82"


def make_picture(content: bytes) -> Picture:
    """Implements `seckill.ports.pictures.PictureMaker`."""
    with explained():
        import PIL.Image  # noqa: F401, PLC0415 (most processes never handle pictures)

    try:
        shown = _shown(content)
        written = io.BytesIO()
        shown.save(written, "WEBP", quality=QUALITY, method=4, exif=b"", icc_profile=b"", xmp=b"")
    except BadPicture:
        raise
    except Exception as error:  # a decoder may fail in any way on a forged picture
        raise _damaged() from error
    result = written.getvalue()
    width, height = shown.size
    return Picture(digest=hashlib.sha256(result).hexdigest(), content=result, width=width, height=height)


def _shown(content: bytes) -> "Image":
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # judged below, by a smaller figure
        try:
            # Reads the header only. Nothing is unpacked before the size is known.
            opened = Image.open(io.BytesIO(content), formats=FORMATS)
        except UnidentifiedImageError:
            raise BadPicture("must be a JPEG, PNG or WebP picture") from None
        except Image.DecompressionBombError:
            raise _too_large() from None
    width, height = opened.size
    if width * height > PIXELS_MAX:
        raise _too_large()
    if opened.format == "PNG" and _PNG_END not in content:  # the decoder reads no further than the pixels
        raise _damaged()
    opened.draft("RGB", (SIDE_MAX, SIDE_MAX))  # a JPEG can be unpacked at a smaller size right away
    picture = _in_srgb(ImageOps.exif_transpose(opened))
    picture.thumbnail((SIDE_MAX, SIDE_MAX), Image.Resampling.LANCZOS)
    return picture


def _damaged() -> BadPicture:
    return BadPicture("is damaged and cannot be read")


def _too_large() -> BadPicture:
    return BadPicture(f"has too many pixels: at most {PIXELS_MAX // 1_000_000} million")


def _in_srgb(picture: "Image") -> "Image":
    """Converts to sRGB, which all screens know: the profile is dropped, so the colours have to be right without it."""
    from PIL import ImageCms  # noqa: PLC0415

    mode = "RGBA" if picture.has_transparency_data else "RGB"
    profile = picture.info.get("icc_profile")
    if profile and picture.mode in ("RGB", "CMYK"):
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(picture, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
            return converted or picture.convert(mode)
        except ImageCms.PyCMSError:  # not a valid profile
            pass
    return picture.convert(mode)

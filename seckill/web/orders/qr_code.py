"""An address as a picture that a phone can scan."""

from seckill.extras import explained


def qr_code(address: str) -> str:
    """A data: address of an SVG."""
    with explained():
        import segno  # noqa: PLC0415 (only for addresses that are for an app)

    return str(segno.make(address, error="m").svg_data_uri(scale=8, border=4, dark="#000", light="#fff"))

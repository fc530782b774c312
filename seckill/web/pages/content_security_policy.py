"""The Content-Security-Policy of each kind of page: what it may load, and from where."""

import base64
import hashlib
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from seckill.settings import Settings

# A page without a policy of its own may do nothing at all.
NOTHING_ALLOWED = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox"
# Nothing from other hosts, no inline script. The docs page sets style attributes, hence 'unsafe-inline' for styles.
DOCS_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_INLINE = re.compile(rb"<script(?: id=[^ >]+)?>(.*?)</script>", re.DOTALL)


def page_headers(image_hosts: Sequence[str] = (), check_hosts: Sequence[str] = ()) -> dict[str, str]:
    """Allows nothing from other hosts except pictures from the named ones, nothing inline, no text that becomes markup,
    and no frame around the page. Where a captcha's widget is shown, its hosts may do what it needs, which is much."""
    pictures = " ".join(["'self'", "data:", *(f"https://{host}" for host in image_hosts)])
    widget = "".join(f" {host}" for host in check_hosts)
    types = "require-trusted-types-for 'script'; trusted-types seckill-worker"
    policy = (
        f"default-src 'none'; script-src 'self'{widget}; style-src 'self'{widget}; img-src {pictures}{widget}; "
        f"connect-src 'self'{widget}; font-src 'self'; worker-src 'self'; "
        f"{f'frame-src{widget}; ' if widget else ''}"
        f"frame-ancestors 'none'; base-uri 'none'; form-action 'none'{'' if widget else f'; {types}'}"
    )
    return {
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }


def check_hosts_of(settings: Settings) -> list[str]:
    """Returns the hosts of the captcha's widget, as a policy spells them."""
    if not settings.check_script_url:
        return []
    script = urlsplit(settings.check_script_url)
    return [f"{script.scheme}://{script.netloc}", *(f"https://{host}" for host in settings.check_hosts)]


def help_policy(page: bytes) -> str:
    """The theme has short scripts in its pages. They are allowed by their digests, and no others are."""
    digests = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _INLINE.findall(page))
    scripts = " ".join(f"'sha256-{digest}'" for digest in dict.fromkeys(digests))
    return (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; worker-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )

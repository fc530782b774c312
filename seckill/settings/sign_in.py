"""Settings about the provider (OpenID Connect) with which operators sign in to the console, instead of using a key."""

from dataclasses import dataclass, field

from seckill.settings import kinds, provider_keys
from seckill.settings.redaction import Secret
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class SignInSettings:
    oidc_url: str = field(
        default="",
        metadata=about(
            provider_keys.https_url,
            "The provider (issuer) where operators sign in to the console with OpenID Connect; what it says under "
            "`/.well-known/openid-configuration` is followed. Needs `SECKILL_PUBLIC_URL`.",
        ),
    )
    oidc_name: str = field(
        default="", metadata=about(str, "What the console calls it: “Sign in with …”; when empty, the provider's host.")
    )
    oidc_client_id: str = field(default="", metadata=about(str, "Under which name the provider knows the console."))
    oidc_client_secret: Secret | None = field(
        default=None,
        metadata=about(
            kinds.service_secret, "What the provider has given the console with it; when empty, PKCE alone has to do."
        ),
    )
    oidc_roles_claim: str = field(
        default="groups", metadata=about(str, "The claim of the provider's ID token by which somebody gets a role.")
    )
    oidc_roles: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=about(
            kinds.roles,
            "Which value of that claim gives which role, such as `admin=sre,operator=sales,viewer=staff`; the greatest "
            "counts, and nobody else is let in.",
            "role=value,…",
        ),
    )
    oidc_session_s: int = field(
        default=28_800,
        metadata=about(
            kinds.whole(60, 604_800), "How long somebody stays signed in; then they sign in anew.", "seconds"
        ),
    )

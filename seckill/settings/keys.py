"""Settings about which tokens and keys are valid."""

from dataclasses import dataclass, field

from seckill.settings import kinds
from seckill.settings.redaction import Secret
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class KeySettings:
    jwt_secret: Secret | None = field(
        default=None,
        metadata=about(kinds.hmac_secret, "Secret that signs buyers' tokens (HS256).", "≥ 32 bytes"),
    )
    jwt_secrets: tuple[tuple[str, Secret], ...] = field(
        default=(),
        metadata=about(
            kinds.named_secrets,
            "Secrets by the `kid` of the tokens that they sign (HS256), also beside `SECKILL_JWT_SECRET`, so that one "
            "can be replaced by another.",
            "kid=secret,…",
        ),
    )
    jwt_public_key: str | None = field(
        default=None,
        metadata=about(
            kinds.public_key,
            "Instead of the secret: the public key (RSA, P-256 or Ed25519) of whoever signs buyers' tokens.",
            "PEM or path",
        ),
    )
    jwks_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where the issuer of buyers' tokens publishes its keys (a JSON Web Key Set), which are then followed.",
        ),
    )
    jwt_issuer: str | None = field(
        default=None, metadata=about(str, "When set, the `iss` that buyers' tokens must have.")
    )
    jwt_audience: str | None = field(
        default=None, metadata=about(str, "When set, the `aud` that buyers' tokens must have.")
    )
    jwt_groups_claim: str = field(
        default="groups",
        metadata=about(str, "The claim of a buyer's token that names the groups that the buyer is in."),
    )
    admin_key: Secret | None = field(
        default=None,
        metadata=about(
            kinds.admin_key, "The root key of operators, or for commands: the key that they send.", "≥ 16 characters"
        ),
    )
    admin_key_old: Secret | None = field(
        default=None,
        metadata=about(kinds.admin_key, "While the admin key is replaced: the one before, as good as the new one."),
    )

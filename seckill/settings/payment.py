"""Settings about who takes the money."""

from dataclasses import dataclass, field

from seckill.settings import kinds, provider_keys
from seckill.settings.redaction import Secret
from seckill.settings.setting import about


@dataclass(frozen=True, kw_only=True)
class PaymentSettings:
    payment_provider: str = field(
        default="sandbox",
        metadata=about(
            kinds.provider,
            "Who takes the money: `sandbox` (nobody), `callback` (your own payment side tells us), `stripe`, `alipay`, "
            "`wechat`, or a factory of yours such as `shop.payment:make`.",
        ),
    )
    payment_secret: Secret | None = field(
        default=None,
        metadata=about(kinds.hmac_secret, "Secret that signs payment callbacks and refund requests.", "≥ 32 bytes"),
    )
    payment_secret_old: Secret | None = field(
        default=None,
        metadata=about(
            kinds.hmac_secret,
            "While the payment secret is replaced: the one before. Callbacks may be signed with either; refund "
            "requests are signed with both.",
        ),
    )
    refund_url: str = field(
        default="",
        metadata=about(
            kinds.url("http", "https"),
            "Where `callback` asks for refunds, as a signed POST; when empty, they wait to be made by hand.",
        ),
    )
    public_url: str = field(
        default="",
        metadata=about(
            provider_keys.https_url,
            "Where this installation is reached from outside, such as `https://sale.example.com`: payment providers "
            "send buyers back there, and their notices, and operators come back there from signing in.",
        ),
    )
    stripe_key: Secret | None = field(
        default=None,
        metadata=about(provider_keys.stripe_key, "Stripe's secret key, or a restricted one.", "text or path"),
    )
    stripe_webhook_secrets: tuple[Secret, ...] = field(
        default=(),
        metadata=about(
            provider_keys.stripe_webhook_secrets,
            "What Stripe signs its notices with; two while it is being changed.",
            "texts or path",
        ),
    )
    stripe_url: str = field(
        default="https://api.stripe.com",
        metadata=about(provider_keys.https_url, "Where Stripe's API is."),
    )
    alipay_app_id: str = field(
        default="", metadata=about(provider_keys.account, "The app at Alipay that the money is taken for.")
    )
    alipay_private_key: Secret | None = field(
        default=None,
        metadata=about(
            provider_keys.rsa_private_key,
            "The app's private key (RSA2), which signs requests to Alipay.",
            "PEM or path",
        ),
    )
    alipay_public_keys: tuple[str, ...] = field(
        default=(),
        metadata=about(
            provider_keys.rsa_public_keys,
            "Alipay's public key, by which its notices are known; two while it is being changed.",
            "PEM or path",
        ),
    )
    alipay_seller_id: str = field(
        default="",
        metadata=about(
            provider_keys.account, "When set, the seller (2088…) that notices of Alipay's must be for, as well."
        ),
    )
    alipay_url: str = field(
        default="https://openapi.alipay.com/gateway.do",
        metadata=about(provider_keys.https_url, "Alipay's gateway."),
    )
    wechat_app_id: str = field(
        default="", metadata=about(provider_keys.account, "The app (wx…) that WeChat Pay takes the money for.")
    )
    wechat_merchant_id: str = field(
        default="", metadata=about(provider_keys.account, "The merchant's number at WeChat Pay.")
    )
    wechat_private_key: Secret | None = field(
        default=None,
        metadata=about(
            provider_keys.rsa_private_key,
            "The merchant's private key (apiclient_key.pem), which signs requests to WeChat Pay.",
            "PEM or path",
        ),
    )
    wechat_serial: str = field(
        default="",
        metadata=about(provider_keys.account, "The serial number of the merchant's certificate for that key."),
    )
    wechat_api_keys: tuple[Secret, ...] = field(
        default=(),
        metadata=about(
            provider_keys.wechat_api_keys,
            "The APIv3 key, with which notices of WeChat Pay's are encrypted; two while it is being changed.",
            "texts or path",
        ),
    )
    wechat_public_keys: tuple[str, ...] = field(
        default=(),
        metadata=about(
            provider_keys.wechat_public_keys,
            "WeChat Pay's public key as `PUB_KEY_ID_…=PATH`, or its platform certificate as a path; several with "
            "commas between them.",
            "PEM or path",
        ),
    )
    wechat_url: str = field(
        default="https://api.mch.weixin.qq.com",
        metadata=about(provider_keys.https_url, "Where WeChat Pay's API is."),
    )

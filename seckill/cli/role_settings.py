"""The settings of a role that runs on its own."""

from seckill.backends.payment.provider_choice import open_provider
from seckill.cli.command_settings import environment
from seckill.operations.production_refusals import refuse_make_believe
from seckill.settings import Role, Settings, require_production


def production(role: Role, host: str | None = None, port: int | None = None) -> Settings:
    """Refuses to start if something is missing, or is only make-believe."""
    settings = environment(host=host, port=port)
    require_production(settings, role)
    refuse_make_believe(settings, open_provider(settings))
    return settings

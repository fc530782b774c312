"""The settings of an installation: their table, the kinds of values, and which are secret."""

from seckill.settings.requirements import Role as Role
from seckill.settings.requirements import missing_for_payment as missing_for_payment
from seckill.settings.requirements import require_production as require_production
from seckill.settings.setting import Setting as Setting
from seckill.settings.setting import written as written
from seckill.settings.table import TABLE as TABLE
from seckill.settings.table import Secret as Secret
from seckill.settings.table import Settings as Settings
from seckill.settings.table import read as read
from seckill.settings.table import shown as shown

"""What an installation can be told from outside: the table of settings, the kinds of values, and what is secret."""

from seckill.settings.table import TABLE as TABLE
from seckill.settings.table import Role as Role
from seckill.settings.table import Secret as Secret
from seckill.settings.table import Setting as Setting
from seckill.settings.table import Settings as Settings
from seckill.settings.table import read as read
from seckill.settings.table import require_production as require_production
from seckill.settings.table import shown as shown
from seckill.settings.table import written as written

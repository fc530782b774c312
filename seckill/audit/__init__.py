"""The auditor: checks whether the engine's promises hold now. It only reads, and shares nothing with the engine but the
names of keys and tables, so that a mistake in the engine is not repeated in the auditor."""

from seckill.audit.auditor import Auditor as Auditor
from seckill.audit.auditor import make_ahead as make_ahead
from seckill.audit.auditor import open_auditor as open_auditor
from seckill.audit.report import Report as Report
from seckill.audit.report import Verdict as Verdict

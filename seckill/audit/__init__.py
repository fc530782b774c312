"""The auditor: does what the engine promises hold, now? It only reads, and shares nothing with the engine but the names
of keys and tables, so that a mistake of the engine's cannot be one of the auditor's as well."""

from seckill.audit.auditor import Auditor as Auditor
from seckill.audit.auditor import make_ahead as make_ahead
from seckill.audit.auditor import open_auditor as open_auditor
from seckill.audit.report import Report as Report
from seckill.audit.report import Verdict as Verdict

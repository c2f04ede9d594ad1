"""What a set gives away. An audit can refute a claim of privacy, and can never prove one."""

from limbeck.audit.one_run import OneRunAudit, audit_one_run, plant
from limbeck.audit.verdict import CanaryAudit, canary

__all__ = ["CanaryAudit", "OneRunAudit", "audit_one_run", "canary", "plant"]

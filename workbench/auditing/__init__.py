"""Audits of lossy files of any origin against their originals."""

from workbench.auditing.audit import audit
from workbench.auditing.finding import Finding
from workbench.auditing.result import Audit
from workbench.auditing.row import Row

__all__ = ["Audit", "Finding", "Row", "audit"]

"""Reports: one page of a run or of a sweep, with nothing outside it."""

from adance.report.page import write_report

__all__ = ["write_report"]

"""Reports: one self-contained page of a run or a sweep."""

from adance.report.page import write_report

__all__ = ["write_report"]

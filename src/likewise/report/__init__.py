"""Certificates for people: one HTML file, or a few lines of text. Reads certificates and never searches."""

from __future__ import annotations

from likewise.report.html import write_report
from likewise.report.text import describe

__all__ = ["describe", "write_report"]

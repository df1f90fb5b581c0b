"""Certificates for people: one HTML file, or a few lines of text. Reads certificates and never searches."""

from __future__ import annotations

from likewise.report._words import EVERYONE, ceil_text, floor_text, given_text
from likewise.report.html import write_report
from likewise.report.text import describe, pair_lines, profile_table

__all__ = [
    "EVERYONE",
    "ceil_text",
    "describe",
    "floor_text",
    "given_text",
    "pair_lines",
    "profile_table",
    "write_report",
]

"""Engines: attack finds pairs, milp and paper prove bounds."""

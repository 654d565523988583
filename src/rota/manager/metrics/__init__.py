"""Figures for monitoring: counters, gauges, histograms and rates. Nothing here influences a decision."""

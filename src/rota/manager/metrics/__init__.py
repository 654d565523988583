"""Figures for monitoring: counters, gauges, histograms and rates."""

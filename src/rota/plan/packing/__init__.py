"""Packing: plain jobs, which ask for a size only, onto hosts with free room, by priority and age.

It costs the same for a million equal jobs as for one. It knows no future; that is `plan.planner`.
"""

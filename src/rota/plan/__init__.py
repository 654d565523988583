"""The pure planner: sizes, capacities and who runs where. Imports nothing but the standard library."""

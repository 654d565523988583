"""Pictures of schedules as SVG, PNG and HTML: what is drawn, and where. Knows no planner."""

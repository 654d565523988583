"""Records of the site as the engine keeps them: resources, policy, limits, pauses, and what the planner is
told."""

"""Commands for administrators of a site: resources, queues, quotas, the calendar, rules, limits, shares."""

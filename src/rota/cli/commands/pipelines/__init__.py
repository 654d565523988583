"""Commands about pipelines and about tables that fill themselves."""

"""Commands about pipelines."""

"""Converts the input of `wr add` into jobs of Rota."""

"""The input of `wr add`, read as jobs of Rota."""

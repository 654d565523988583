"""The screens of `rota top`. The only package that imports textual; what shows text of jobs uses `Text` objects
of harmless text, never markup."""

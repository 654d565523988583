"""The screens of `rota top`, and the only package that imports textual.

Text from jobs is shown as `Text` objects made from harmless text, never as markup.
"""

"""The commands, one module per noun or verb. A module is imported only when its command is called."""

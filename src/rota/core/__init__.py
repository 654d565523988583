"""The pure engine: events in, changes and effects out. No clock, socket, file, random or thread."""

"""What jobs print: captured, stored in segments, shipped to the manager, and followed live."""

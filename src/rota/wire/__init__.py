"""What travels between processes: messages, their encoding, and the transports that carry them."""

"""Where everything that was acknowledged is kept: one contract, several stores."""

"""How an attempt ends: walltimes, kills, scarce memory, what runs afterwards, and the verdict."""

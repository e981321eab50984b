"""Function calls of the Berkeley Function-Calling Leaderboard (BFCL)."""

"""`plancast ui`: a local page on which one moves a plan's degrees and sees what changes."""

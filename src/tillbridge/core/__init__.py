"""What every package builds on: clock, log, problems, redaction, workers."""

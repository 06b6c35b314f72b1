"""The menu's way: an export is read, compared, guarded, planned, pushed, and remembered."""

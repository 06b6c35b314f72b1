"""Many bridges seen from one place: each signs how it is; a folder of that is read at a glance."""

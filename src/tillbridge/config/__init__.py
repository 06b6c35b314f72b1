"""The settings of `bridge.toml`: names, types, defaults, meaning, and how the file is read.

Durations are in seconds (`_s`) or milliseconds (`_ms`). The text below each field becomes the JSON
Schema in `config/` and the reference in `docs/configuration.md`. Names are imported from the module
that has them: `status` reads the file (`toml`) without the models, which cost as much as all the
rest of it.
"""

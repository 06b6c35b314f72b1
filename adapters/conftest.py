"""The profiles of hypothesis are those of all other tests: no deadline on a busy machine."""  # noqa: INP001 -- a folder of packages

import tests.conftest  # noqa: F401 -- loading it loads them

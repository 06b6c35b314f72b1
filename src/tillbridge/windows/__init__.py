"""The bridge as a Windows service.

`python -m tillbridge.windows --name tillbridge --config FILE` is what the service control manager
starts; `packaging/windows/install.ps1` registers that. The class that Windows calls (`service`)
holds no logic: what it does is in `body`, which needs no Windows to be tested.
"""

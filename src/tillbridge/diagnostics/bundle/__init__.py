"""The support bundle: what a stranger needs to help, without a secret and without a customer.

Three nets, since none is enough: what is put in is chosen (`contents`), what is known to be secret
or private here is taken out wherever it stands and however it is written (`known`, `scrubber`), and
what merely looks like a secret goes too.
"""

"""An Odoo for tests: strict about names, with a memory, and with the habits of three versions.

It stands in for the real one in the conformance suite, in case folders and in the tests. What it
knows of models, fields and methods is what Odoo 17, 18 and 19 have; asked for anything else it
answers with the failure that Odoo answers with.
"""

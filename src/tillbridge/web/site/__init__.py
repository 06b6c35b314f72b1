"""The page: imported when somebody opens it, so that a bridge nobody looks at stays small.

A subject of the page is one module here with its `Page`s and `Action`s, its templates beside it in
`templates/`, and a line in `registry`. CONTRIBUTING.md says how to add one.
"""

"""How the bytes of an export stand for text: the rule that all adapters share."""

from tillbridge.adapter.decoding import (
    Decoding,
    guess_by_head,
    guess_by_whole,
    head_of,
    is_cut_short,
)

__all__ = ["Decoding", "guess_by_head", "guess_by_whole", "head_of", "is_cut_short"]

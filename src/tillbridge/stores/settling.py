"""How long to wait before an integration is replaced, so that no delivery is lost with it. Pure.

Specification: Events, Transport (retries). What the service could not deliver while the bridge was
down it repeats after 1 minute, 5 minutes, 30 minutes, ... and no more once the integration is
removed. All of it has come once the gap that follows the bridge's absence is over.
"""

from itertools import accumulate

_RETRY_DELAYS_S = (60.0, 300.0, 1800.0, 7200.0, 21600.0)
_ON_THE_WAY_S = 10.0  # the receiver time-out


def settle_s(absent_s: float, least_s: float) -> float:
    """Return how long after its start the bridge has what was placed while it was absent.

    At least `least_s`, which covers the first repetition; with 0 nothing is waited for.
    """
    if least_s <= 0:
        return 0.0
    for delay_s, until_s in zip(_RETRY_DELAYS_S, accumulate(_RETRY_DELAYS_S), strict=True):
        if absent_s < until_s:
            # An absence within the first minute is what `least_s` is made for.
            return least_s if until_s == _RETRY_DELAYS_S[0] else delay_s + _ON_THE_WAY_S
    return _RETRY_DELAYS_S[-1] + _ON_THE_WAY_S  # what was placed later is repeated still

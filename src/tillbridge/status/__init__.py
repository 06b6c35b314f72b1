"""How the bridge is: one document, for `status`, the page, the metrics and a report to a fleet."""

"""The adapters that come with the bridge, and what loads, runs and watches any adapter."""

"""Measuring: requests in pairs on several servers in one run, with the share of identical outputs."""

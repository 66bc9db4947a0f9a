"""Programs a user would pick instead; each runs in a process of its own.

``worker.py`` holds the conversation; there is one short file per peer.
"""

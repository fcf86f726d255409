"""Kafka: topics, topology, the transactional loop, state stores, restore and replay.

`loop.py` is the heart; `engine rules` named in comments are listed in docs/engine-rules.md.
This room knows no target and no agent.
"""

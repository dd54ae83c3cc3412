"""Fits on many machines or cores: rows in partitions, each with a worker (docs/cluster.md).

Engines differ in where the workers run and in nothing else: the bits are those of one process.
"""

from dplasso.cluster.engines import Engine, Events, InProcessEngine, ThreadEngine
from dplasso.cluster.ray_engine import RayEngine

__all__ = ["Engine", "Events", "InProcessEngine", "RayEngine", "ThreadEngine"]

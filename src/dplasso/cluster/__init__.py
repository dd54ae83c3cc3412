"""Fits on several machines or cores: partitions of rows, each with a worker (docs/cluster.md).

Engines differ only in where the workers run. The results equal those of one process bit for bit.
"""

from dplasso.cluster.engines import Engine, InProcessEngine, ThreadEngine
from dplasso.cluster.ray_engine import RayEngine

__all__ = ["Engine", "InProcessEngine", "RayEngine", "ThreadEngine"]

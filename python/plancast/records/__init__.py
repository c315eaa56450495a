"""Measured kernels: a store of them, and what it makes of others."""

from plancast.records.ingest import Ingested
from plancast.records.kernel import Kernel
from plancast.records.store import KernelTime, Record, Records, Sample

__all__ = ["Ingested", "Kernel", "KernelTime", "Record", "Records", "Sample"]

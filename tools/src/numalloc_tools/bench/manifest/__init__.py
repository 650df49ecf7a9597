"""Programs that users bring: a file of TOML says how each is built, started, measured and checked."""

from numalloc_tools.bench.manifest.table import programs

__all__ = ["programs"]

"""Programs of users: a TOML file tells how each is built, started, measured and checked."""

from numalloc_tools.bench.manifest.table import programs

__all__ = ["programs"]

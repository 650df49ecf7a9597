"""numascope: what the caches and memory of a machine with many nodes would see of a program."""

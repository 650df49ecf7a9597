"""`research prove`: the proof that memory is local, in full and beside the peers."""

from research.proof.command import register

__all__ = ["register"]

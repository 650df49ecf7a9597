"""From a setting to a started program: what is changed for it, and how it is watched until it ends."""

from numalloc_tools.launch.prepare import Launch, prepared
from numalloc_tools.launch.setting import Setting

__all__ = ["Launch", "Setting", "prepared"]

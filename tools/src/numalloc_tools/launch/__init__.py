"""From a setting to a started program: prepares its environment, starts it, and watches it until its end."""

from numalloc_tools.launch.prepare import Launch, prepared
from numalloc_tools.launch.setting import Setting

__all__ = ["Launch", "Setting", "prepared"]

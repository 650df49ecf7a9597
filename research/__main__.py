"""`.venv/bin/python research COMMAND`, from any folder."""

import sys
from pathlib import Path

# Started by its folder's name, Python looks for modules in the folder itself; the package is one level above.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from research.cli import main  # noqa: E402

main()

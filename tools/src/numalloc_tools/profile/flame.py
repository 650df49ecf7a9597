"""A flame graph as one SVG file: callers below, callees above, with widths in proportion to the requested bytes.

The colour shows how much of a frame's memory is remote, from yellow (none) to red (all). A click on a frame makes it
as wide as the picture; a click on the lowest frame shows all again.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from html import escape

from numalloc_tools.profile.report import percent, size
from numalloc_tools.profile.samples import Sample
from numalloc_tools.profile.totals import is_remote

WIDTH = 1200
ROW = 18
HEADER = 40
LETTER = 7.0  # approximate width of a letter in pixels
NARROWEST = 0.3  # pixels; narrower frames are left out

SCRIPT = """
const frames = [...document.querySelectorAll('.frame')];
function show(top) {
  const x = +top.dataset.x, w = +top.dataset.w, y = +top.dataset.y;
  for (const frame of frames) {
    const fx = +frame.dataset.x, fw = +frame.dataset.w, below = +frame.dataset.y < y;
    const inside = fx >= x - 1e-9 && fx + fw <= x + w + 1e-9, around = below && fx <= x + 1e-9 && fx + fw >= x + w - 1e-9;
    frame.style.display = inside || around ? '' : 'none';
    const left = around ? 0 : (fx - x) / w * WIDTH, width = around ? WIDTH : fw / w * WIDTH;
    frame.querySelector('rect').setAttribute('x', left);
    frame.querySelector('rect').setAttribute('width', Math.max(width - 0.5, 0.1));
    const text = frame.querySelector('text'), name = frame.dataset.name, fits = Math.floor((width - 6) / LETTER);
    text.setAttribute('x', left + 3);
    text.textContent = fits < 3 ? '' : name.length <= fits ? name : name.slice(0, fits - 2) + '..';
  }
}
for (const frame of frames) frame.addEventListener('click', () => show(frame));
"""


@dataclass
class Frame:
    bytes: int = 0
    remote: int = 0
    callees: dict[str, "Frame"] = field(default_factory=lambda: defaultdict(Frame))


def tree(samples: list[Sample]) -> Frame:
    root = Frame()
    for sample in samples:
        remote = sample.bytes if is_remote(sample) else 0
        frame = root
        frame.bytes += sample.bytes
        frame.remote += remote
        for name in reversed(sample.stack):
            frame = frame.callees[name]
            frame.bytes += sample.bytes
            frame.remote += remote
    return root


def svg(samples: list[Sample], title: str) -> str:
    root = tree(samples)
    height = HEADER + ROW * (1 + max((len(sample.stack) for sample in samples), default=0)) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" font-family="monospace" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{WIDTH / 2}" y="24" font-size="16" text-anchor="middle">{escape(title)}</text>',
    ]
    whole = root.bytes or 1
    to_draw = [("all", root, 0.0, 0)]  # no recursion: other tools' stacks may have thousands of frames
    while to_draw:
        name, frame, x, depth = to_draw.pop()
        if frame.bytes / whole * WIDTH < NARROWEST:
            continue
        parts.append(_drawn(name, frame, x, depth, height - 10, whole))
        for callee_name, callee in sorted(frame.callees.items()):
            to_draw.append((callee_name, callee, x, depth + 1))
            x += callee.bytes / whole
    script = SCRIPT.replace("WIDTH", str(WIDTH)).replace("LETTER", str(LETTER))
    parts += [f"<script><![CDATA[{script}]]></script>", "</svg>"]
    return "\n".join(parts) + "\n"


def _drawn(name: str, frame: Frame, x: float, depth: int, bottom: int, whole: int) -> str:
    """`x` and the width are fractions of the picture's width."""
    part = frame.bytes / whole
    remote = frame.remote / frame.bytes if frame.bytes else 0
    colour = f"hsl({50 - 50 * remote:.0f},90%,{68 - 8 * remote:.0f}%)"
    left, width, top = x * WIDTH, part * WIDTH, bottom - (depth + 1) * ROW
    fits = int((width - 6) / LETTER)
    shown = "" if fits < 3 else name if len(name) <= fits else name[: fits - 2] + ".."
    hover = f"{name}: {size(frame.bytes)}, {percent(part)} of all, {percent(remote)} of it remote"
    return (
        f'<g class="frame" data-x="{x:.9f}" data-w="{part:.9f}" data-y="{depth}" data-name="{escape(name)}">'
        f"<title>{escape(hover)}</title>"
        f'<rect x="{left:.2f}" y="{top}" width="{max(width - 0.5, 0.1):.2f}" height="{ROW - 1}" rx="2" fill="{colour}"/>'
        f'<text x="{left + 3:.2f}" y="{top + ROW - 5}" pointer-events="none">{escape(shown)}</text></g>'
    )

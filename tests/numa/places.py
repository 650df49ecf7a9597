"""Jobs about memory where the program says, for any machine of eight nodes: name, program and its arguments."""

EVERYWHERE = {
    "psm": ("psm", "neighbours", 12),
    "promised-interleave": ("psm", "promised", 12),
    "promised-registered": ("psm", "registered", 12),
    "on-node": ("places", "on_node"),
    "interleaved": ("places", "interleaved"),
    "chosen-bind": ("places", "chosen", "1,3,4", "bind:1,3-4"),
    "realloc-keeps": ("places", "kept", "yes"),
    "where": ("places", "where"),
    "moved": ("places", "moved"),
}

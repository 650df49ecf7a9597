"""What repeats papers and models hardware. It uses numalloc's tools, and nothing of the product uses it."""

"""The exception whose text is for users."""


class Problem(Exception):
    """A problem that the user can fix: one line that names it and what is accepted."""

    shows_traceback = False  # numalloc --debug

    def __init__(self, message: str, exit_status: int = 2):
        super().__init__(message)
        self.exit_status = exit_status

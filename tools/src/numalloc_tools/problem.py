"""The one exception whose text a user is meant to read."""


class Problem(Exception):
    """Something the user can put right: one line that names what was wrong and what is accepted."""

    shows_traceback = False  # numalloc --debug

    def __init__(self, message: str, exit_status: int = 2):
        super().__init__(message)
        self.exit_status = exit_status

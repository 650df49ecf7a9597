"""The `numalloc` command, and `python -m numalloc_tools`."""

import signal


def main() -> None:
    # Until the command begins, Ctrl-C ends the process as it ends other programs: an import cannot handle KeyboardInterrupt.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from numalloc_tools import cli

    cli.main()


if __name__ == "__main__":
    main()

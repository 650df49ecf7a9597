"""Who starts the tests may ignore signals: nohup does, and a shell's & in a script. The programs that the tests start
would ignore them too, and not end when they are interrupted."""

import signal


def pytest_configure() -> None:
    for number, default in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, default)

"""The files that a program needs in the guest, and the shell line that starts it there."""

import os
import shlex
import shutil

from numalloc_tools.guest.image import Image, is_guests_own
from numalloc_tools.problem import Problem

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/lab/bin"
BASIC_ENVIRONMENT = {"PATH": PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}
# Loaded by name at run time, so ldd does not list it: the C library needs it to unwind an ending thread.
_UNWINDER = "libgcc_s.so.1"


def _library_folders(image: Image) -> list[str]:
    if image.architecture.foreign:
        return [image.architecture.cross_folder]
    triplet = image.architecture.triplet
    return [f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib64", "/usr/lib64", "/usr/lib"]


def add_needs(image: Image, environment: dict[str, str], arguments: list[str]) -> None:
    """Preloaded libraries, files named as arguments, numactl, a shell, the working folder."""
    for library in environment.get("LD_PRELOAD", "").replace(":", " ").split():
        if not os.path.isfile(library):
            raise Problem(f"preloaded library {library}: no such file")
        image.add_program(os.path.abspath(library))
    for argument in arguments:
        if os.path.isfile(argument) and not is_guests_own(argument):
            image.add_file(os.path.abspath(argument))
    for folder in _library_folders(image):
        if os.path.exists(f"{folder}/{_UNWINDER}"):
            image.add_program(f"{folder}/{_UNWINDER}")
            break
    if not image.architecture.foreign:
        if numactl := shutil.which("numactl"):
            image.add_program(numactl)
        image.add_program("/bin/sh")  # for system() and popen()
    image.add_folder(working_folder())


def working_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise Problem("the current folder has been deleted") from None


def command_script(program: str, arguments: list[str], environment: dict[str, str], prefix: list[str] | None = None) -> str:
    """Shell lines that replace the shell by the program of that path. The environment applies to the command only,
    not to the shell: a preloaded library is active in the program alone."""
    assignments = [f"{name}={value}" for name, value in {**BASIC_ENVIRONMENT, **environment}.items()]
    # busybox's shell has its own commands of these names, so full paths are used.
    words = [f"/lab/bin/{prefix[0]}", *prefix[1:]] if prefix else []
    words += ["/lab/bin/env", "-i", *assignments, program, *arguments]
    return f"cd {shlex.quote(working_folder())}\nexec {shlex.join(words)}\n"


def environment_of(assignments: list[str], preload: list[str]) -> dict[str, str]:
    environment = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not name or (not equals and name not in os.environ):
            raise Problem(f"--env: '{text}' is neither NAME=VALUE nor a variable that is set here")
        environment[name] = value if equals else os.environ[name]
    if preload:
        given = environment.get("LD_PRELOAD", "").split()
        environment["LD_PRELOAD"] = " ".join([*(os.path.abspath(library) for library in preload), *given])
    return environment

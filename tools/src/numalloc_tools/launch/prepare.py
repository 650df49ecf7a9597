"""From a setting to a start: changes of the environment, and system calls before exec."""

import ctypes
import errno
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from numalloc_tools.allocators import BASELINE, OURS, Allocator
from numalloc_tools.allocators.found import binding_for, find, hardened, joined, without_allocators
from numalloc_tools.launch import nodes
from numalloc_tools.launch.setting import DEFAULT, Setting
from numalloc_tools.machine.calls import Call, HugePagesDisabled, MemoryPolicy, inherited_policy
from numalloc_tools.machine.lists import numbers
from numalloc_tools.options_table import option, options
from numalloc_tools.problem import Problem

_BINDING = {"none": "none", "sparse": "interleave", "dense": "saturate"}  # --threads in words of the library's option
_BINDING_OPTIONS = ("binding", "binding_file")  # options that libnumalloc-binding.so reads
_WITH_STACKS = ("guarded", "backtrace", "profile")  # options whose reports have stacks
_OFF = ("0", "off", "no")
_UNWINDER = "libgcc_s.so.1"
_HUGE_PAGES_FILE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@dataclass(frozen=True)
class Launch:
    environment: dict[str, str | None]  # changes to the user's environment; None removes a variable
    calls: tuple[Call, ...] = ()
    notes: tuple[str, ...] = ()  # settings that have no effect on this machine

    def enter(self) -> None:
        """Called in the process that becomes the program, before exec."""
        for call in self.calls:
            call.make()

    def applied_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        wanted = {**environment, **self.environment}
        return {name: value for name, value in wanted.items() if value is not None}

    def also(self, *calls: Call) -> "Launch":
        return replace(self, calls=(*self.calls, *calls))

    def with_environment(self, more: Mapping[str, str | None]) -> "Launch":
        return replace(self, environment={**self.environment, **more})


def prepared(setting: Setting, environment: Mapping[str, str] = os.environ, verbose: bool = False) -> Launch:
    """Raises Problem if this machine cannot do what the setting requests; nothing has been changed then."""
    allocator = _allocator(setting, environment.get("LD_PRELOAD", ""))
    ours = allocator.ours and not setting.binding_only
    said = dict(setting.options)
    binding = None if ours else _binding_library(setting, allocator, said)
    _check_options(said, setting, allocator, ours, binding is not None)
    if setting.threads in _BINDING and (ours or binding):
        said["binding"] = _BINDING[setting.threads]

    notes: list[str] = []
    policy = _policy(setting, ours, said, notes)
    calls: list[Call] = [policy] if policy else []
    variables = _huge_pages(setting, allocator, calls, said)
    variables |= {option(name).variable: value for name, value in said.items()}
    if ours or binding:
        if verbose:
            variables["NUMALLOC_VERBOSE"] = "1"
        _check_environment(environment, variables)
    changes: dict[str, str | None] = {name: joined(name, value, environment.get(name)) for name, value in variables.items()}
    library = None if setting.binding_only and allocator.ours else allocator.library
    present = environment.get("LD_PRELOAD", "")
    # The user's own libraries come first: a sanitizer must, and operators new and delete are used only before ours.
    # Programs that are not in C++ have no unwinder.
    stacks = ours and any((said.get(name) or environment.get(option(name).variable) or "0") not in _OFF for name in _WITH_STACKS)
    unwinder = [_UNWINDER] if stacks and _is_installed(_UNWINDER) else []
    preload = [*without_allocators(present), *unwinder, *(str(path) for path in (binding, library) if path)]
    if ":".join(preload) != present:
        changes["LD_PRELOAD"] = ":".join(preload) or None
    return Launch(changes, tuple(calls), tuple(notes))


def _allocator(setting: Setting, preload: str) -> Allocator:
    if setting.allocator == OURS and not setting.binding_only and (library := hardened(preload)):
        return Allocator(OURS, (library,))
    return find(setting.allocator)


def _is_installed(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _binding_library(setting: Setting, allocator: Allocator, said: dict[str, str]) -> Path | None:
    wanted = setting.binding_only or setting.threads in ("sparse", "dense") or any(name in said for name in _BINDING_OPTIONS)
    return binding_for(allocator) if wanted else None


def _check_options(said: dict[str, str], setting: Setting, allocator: Allocator, ours: bool, bound: bool) -> None:
    if setting.threads != DEFAULT and "binding" in said:
        raise Problem("--threads: conflicts with --binding; accepted: one of the two")
    if said.get("binding") == "file" and said.get("binding_file", "none") == "none":
        raise Problem("--binding: 'file' needs a file of rules; accepted: together with --binding-file FILE")
    if (file := said.get("binding_file", "none")) != "none":
        said["binding_file"] = str(_readable(Path(file)))
    if ours:
        return
    for name in said:
        if name not in _BINDING_OPTIONS or not bound:
            under = "only its binding is used" if setting.binding_only else f"the program runs under {allocator.name}"
            raise Problem(f"{option(name).flag}: this is an option of numalloc, but {under}; accepted: --binding, --binding-file")


def _readable(path: Path) -> Path:
    """Makes the path absolute: the program may change its folder before its first thread."""
    try:
        with open(path):
            return path.absolute()
    except OSError as error:
        raise Problem(f"--binding-file: {path} cannot be read ({error.strerror}); accepted: a file of rules") from None


def _check_environment(environment: Mapping[str, str], variables: dict[str, str]) -> None:
    """Checks the user's own variables, which the library reads too."""
    for one in options():
        value = environment.get(one.variable)
        if value and one.variable not in variables:
            one.check(value, one.variable)


def _policy(setting: Setting, ours: bool, said: dict[str, str], notes: list[str]) -> MemoryPolicy | None:
    """The policy for the whole process. Under numalloc, its option sets the placement of malloc's memory, if it has one."""
    machine = nodes.read()
    word, _, list_text = setting.memory.partition(":")
    named = tuple(sorted({machine.with_memory(node, "--memory") for node in numbers(list_text)}))
    if ours and word in ("local", "interleave", "preferred", "bind"):
        said["memory"] = setting.memory
        policy = _default_policy()
    elif ours and word == "first-touch":
        if "memory_binding" in said:
            raise Problem("--memory: first-touch sets memory_binding to none; accepted: one of --memory and --memory-binding")
        said["memory_binding"] = "none"
        policy = _default_policy()
    else:
        policies: dict[str, Callable[[], MemoryPolicy | None]] = {
            "first-touch": _default_policy,
            "local": partial(MemoryPolicy, "MPOL_LOCAL"),
            "interleave": partial(MemoryPolicy, "MPOL_INTERLEAVE", machine.memory),
            "weighted": partial(MemoryPolicy, "MPOL_WEIGHTED_INTERLEAVE", machine.memory),
            "preferred": partial(MemoryPolicy, "MPOL_PREFERRED", named),
            "bind": partial(MemoryPolicy, "MPOL_BIND", named),
        }
        policy = policies[word]() if word in policies else None
    if setting.autonuma == "off":
        policy = _without_balancing(policy, machine, notes)
    if policy and machine.one:
        notes.append("this machine has one node, so --memory has no effect")
        return None
    if policy and (error := policy.refusal()):
        raise _refused(setting, policy, error)
    return policy


def _default_policy() -> MemoryPolicy | None:
    """Needed only to replace the user's own policy, such as numactl's."""
    return MemoryPolicy("MPOL_DEFAULT") if inherited_policy() != "MPOL_DEFAULT" else None


def _without_balancing(policy: MemoryPolicy | None, machine: nodes.Nodes, notes: list[str]) -> MemoryPolicy | None:
    """AutoNUMA skips memory with any policy but the default; the policy local places as the default does."""
    if machine.one or not nodes.autonuma_is_on():
        notes.append("AutoNUMA is off in this kernel")
        return policy
    if policy and policy.mode != "MPOL_DEFAULT":
        return policy
    return policy if policy is None and inherited_policy() != "MPOL_DEFAULT" else MemoryPolicy("MPOL_LOCAL")


def _refused(setting: Setting, policy: MemoryPolicy, error: int) -> Problem:
    flag = "--autonuma" if policy.mode == "MPOL_LOCAL" and setting.memory != "local" else "--memory"
    if policy.mode == "MPOL_WEIGHTED_INTERLEAVE" and error == errno.EINVAL:
        return Problem(f"--memory: weighted needs Linux 6.9, and this is Linux {platform.release()}; accepted: interleave")
    reason = f"the kernel refuses {policy} ({errno.errorcode.get(error, error)})"
    if error in (errno.EPERM, errno.ENOSYS, errno.EACCES):
        reason += "; in a container, the seccomp filter must allow set_mempolicy"
    return Problem(f"{flag}: {reason}")


def _huge_pages(setting: Setting, allocator: Allocator, calls: list[Call], said: dict[str, str]) -> dict[str, str]:
    """Returns the allocator's variables; adds the process's call to `calls`."""
    if setting.huge_pages == DEFAULT:
        return {}
    if "thp" in said:
        raise Problem("--huge-pages: conflicts with --thp; accepted: one of the two")
    if setting.huge_pages == "off":
        calls.append(HugePagesDisabled(True))
        return {}
    state = _system_huge_pages()
    if state == "never":
        raise Problem(f"--huge-pages: this system gives none; accepted: on, once {_HUGE_PAGES_FILE} says madvise or always")
    if HugePagesDisabled.now():
        calls.append(HugePagesDisabled(False))
    switch = Allocator(BASELINE).huge_pages if setting.binding_only and allocator.ours else allocator.huge_pages
    if not switch and state != "always":
        raise Problem(
            f"--huge-pages: {allocator.name} has no switch that requests them, and this system gives them only on request; "
            f"accepted: on, once {_HUGE_PAGES_FILE} says always"
        )
    return dict(switch)


def _system_huge_pages() -> str:
    try:
        text = _HUGE_PAGES_FILE.read_text()
    except OSError:
        return "never"
    return text.partition("[")[2].partition("]")[0]

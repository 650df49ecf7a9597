"""What the lab takes from the host and keeps there, without a virtual machine."""

import os
import shutil
import subprocess
import sys

import pytest
from limits import LIMIT
from numalloc_tools.guest import kernel, vm
from numalloc_tools.guest.architecture import AARCH64
from numalloc_tools.guest.image import Image
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.problem import Problem


def numalloc(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    code = "from numalloc_tools.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT
    )


def packed(image: Image, tmp_path, start: str | None = None) -> list[str]:
    """The names in the archive that begin with `start`, without it: else those below tmp_path."""
    (tmp_path / "work").mkdir()
    image.add_own("lab/init", b"")
    image.write(tmp_path / "archive", tmp_path / "work")
    with (tmp_path / "archive").open("rb") as archive:
        names = subprocess.run(["cpio", "--list", "--quiet"], stdin=archive, capture_output=True, text=True, timeout=LIMIT).stdout
    start = str(tmp_path).lstrip("/") + "/" if start is None else start
    return sorted(name.removeprefix(start) for name in names.splitlines() if name.startswith(start))


def test_folder_goes_with_its_links_wherever_they_point(tmp_path):
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tmp_path / "beside").write_text("data")
    (tree / "to-file").symlink_to("../beside")
    (tree / "to-folder").symlink_to("below")
    (tree / "to-nowhere").symlink_to("/no/such/file")
    (tree / "through-nowhere").symlink_to("to-nowhere/../x")
    (tree / "circle").symlink_to("circle")
    os.mkfifo(tree / "pipe")
    image = Image()
    image.add_file(str(tree))
    links = ["tree/circle", "tree/through-nowhere", "tree/to-file", "tree/to-folder", "tree/to-nowhere"]
    assert packed(image, tmp_path) == sorted(["beside", "tree", "tree/below", *links])


def test_script_that_names_itself_as_interpreter(tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!{script}\n")
    script.chmod(0o755)
    image = Image()
    image.add_program(str(script))
    assert packed(image, tmp_path) == ["script"]


def test_libraries_in_folders_with_spaces(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (tmp_path / "empty.c").write_text("int nothing(void) { return 0; }\n")
    (tmp_path / "main.c").write_text("int nothing(void); int main(void) { return nothing(); }\n")
    subprocess.run(["cc", "-shared", "-o", folder / "libnothing.so", tmp_path / "empty.c"], check=True, timeout=LIMIT)
    program = tmp_path / "program"
    subprocess.run(["cc", "-o", program, tmp_path / "main.c", folder / "libnothing.so"], check=True, timeout=LIMIT)
    image = Image()
    image.add_program(str(program))
    assert "a folder/libnothing.so" in packed(image, tmp_path)
    (folder / "libnothing.so").unlink()
    with pytest.raises(Problem, match="libnothing.so"):
        Image().add_program(str(program))
    Image().add_file(str(program))  # one of many in a folder: it may never run


def test_half_a_kernel_is_none(tmp_path):
    head = bytearray(4096)
    head[0x202:0x206] = b"HdrS"
    head[0x1F1] = 3
    head[0x1F4:0x1F8] = (128).to_bytes(4, "little")
    whole = tmp_path / "vmlinuz"
    whole.write_bytes(head)
    assert kernel.is_whole(whole)
    whole.write_bytes(head[:-1])
    assert not kernel.is_whole(whole)
    whole.write_bytes(b"something else")
    assert not kernel.is_whole(whole)


def test_half_a_kernel_of_arm64_is_none(tmp_path):
    head = bytearray(4096)
    head[0x38:0x3C] = b"ARMd"
    head[0x10:0x18] = (5000).to_bytes(8, "little")  # in memory
    whole = tmp_path / "vmlinuz"
    whole.write_bytes(head)
    assert kernel.is_whole(whole)
    whole.write_bytes(head[:2048])
    assert not kernel.is_whole(whole)
    head[0x3C] = 0x40  # a program of the firmware's: its one section ends where the file does
    head[0x40:0x44] = b"PE\0\0"
    head[0x46] = 1
    head[0x58 + 16 : 0x58 + 24] = (3072).to_bytes(4, "little") + (1024).to_bytes(4, "little")
    whole.write_bytes(head)
    assert kernel.is_whole(whole)
    whole.write_bytes(head[:-1])
    assert not kernel.is_whole(whole)


@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-gcc"), reason="no cross compiler")
def test_program_of_another_architecture_brings_its_own_libraries(tmp_path):
    (tmp_path / "empty.c").write_text("int nothing(void) { return 0; }\n")
    (tmp_path / "main.c").write_text("int nothing(void); int main(void) { return nothing(); }\n")
    library, program = tmp_path / "libnothing.so", tmp_path / "program"
    subprocess.run(["aarch64-linux-gnu-gcc", "-shared", "-o", library, tmp_path / "empty.c"], check=True, timeout=LIMIT)
    subprocess.run(
        ["aarch64-linux-gnu-gcc", "-o", program, tmp_path / "main.c", library, f"-Wl,-rpath,{tmp_path}"], check=True, timeout=LIMIT
    )
    image = Image(architecture=AARCH64)
    image.add_program(str(program))
    names = packed(image, tmp_path, start="")
    cross = "usr/aarch64-linux-gnu/lib"
    assert {str(library).lstrip("/"), f"{cross}/libc.so.6", f"{cross}/ld-linux-aarch64.so.1"} <= set(names)
    library.unlink()
    with pytest.raises(Problem, match="libnothing.so"):
        Image(architecture=AARCH64).add_program(str(program))
    with pytest.raises(Problem, match="/bin/sh is not for aarch64"):
        Image(architecture=AARCH64).add_program("/bin/sh")


def test_damaged_kernel_is_fetched_again_and_no_network_is_said_in_one_line(tmp_path):
    kept = tmp_path / "numalloc/packages/linux-image-1-cloud-amd64/boot"
    kept.mkdir(parents=True)
    (kept / "vmlinuz-1").write_bytes(b"damaged")
    (tmp_path / "bin").mkdir()
    for name, text in (("apt-cache", "echo ' Depends: linux-image-1-cloud-amd64'"), ("apt-get", "echo 'no network' >&2; exit 100")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    done = numalloc("lab", "run", "--", "true", XDG_CACHE_HOME=str(tmp_path), PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.returncode == 125
    assert "apt-get could not fetch linux-image-1-cloud-amd64: no network" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list((tmp_path / "numalloc/packages").iterdir()) == []


def test_cache_that_cannot_be_made():
    done = numalloc("lab", "run", "--", "true", XDG_CACHE_HOME="/proc/nothing")
    assert done.returncode == 125
    assert "name another with XDG_CACHE_HOME" in done.stderr.splitlines()[-1]


def test_files_that_do_not_fit_into_the_machine_are_refused(tmp_path):
    machine = build_machine(2, "2", "64M", "full")
    archive = tmp_path / "archive"
    with archive.open("wb") as file:
        file.truncate(40 << 20)
    with pytest.raises(Problem, match="need 144M"):
        vm.check_size(archive, machine)
    with archive.open("wb") as file:
        file.truncate(10 << 20)
    vm.check_size(archive, machine)

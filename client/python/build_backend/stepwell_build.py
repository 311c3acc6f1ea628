"""Builds the wheel of the package `stepwell`: what pip asks for (PEP 517), by the standard library alone.

The extension is the recorder's sources and the files of core/ in one shared object that shows
PyInit__core and nothing else, with the C++ runtime inside: it needs glibc, and no package of Debian's. Beside it lies
the program that is its agent, which takes minutes to build and is therefore taken from a build: the one that
STEPWELL_WHEEL_PROGRAM names ("off" = none), else what `cmake --build build/release --target stepwell_alone` left, where
it did and that runs here. The licences of what is linked into it lie in the wheel's dist-info. Elsewhere than on Linux the wheel has neither, and the package does nothing, with one warning.

stepwell_build.py FOLDER builds the wheel without pip, for the interpreter that runs it.
"""

from __future__ import annotations

import base64
import concurrent.futures
import hashlib
import os
import pathlib
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

_HERE = pathlib.Path(__file__).resolve().parent.parent
_ROOT = _HERE.parent.parent
_RECORDER = _ROOT / "client" / "recorder"
_NAME = "stepwell"
_PROGRAM_FOLDER = f"{_NAME}/_program"
_PROGRAM = f"{_PROGRAM_FOLDER}/bin/stepwell"
_BUILT_PROGRAM = _ROOT / "build" / "release" / "alone" / "stepwell"
_BUILDS_IT = "cmake --build build/release --target stepwell_alone"
# What is inside of it: as NOTICE calls it, Debian's package with its licence, the archives of client/cli/alone/CMakeLists.txt
# ("" = headers, or the compiler's).
INSIDE = (
    ("gRPC", "libgrpc-dev", "grpc++ grpc gpr"),
    ("xxHash", "libxxhash0", ""),  # in gRPC, whose package says nothing of it
    ("upb", "libgrpc-dev", "upb"),
    ("address_sorting", "libgrpc-dev", "address_sorting"),
    ("Protocol Buffers", "libprotobuf-dev", "protobuf"),
    ("Abseil", "libabsl-dev", "absl_base"),
    ("RE2", "libre2-dev", "re2"),
    ("c-ares", "libc-ares-dev", "cares"),
    ("OpenSSL", "libssl-dev", "ssl crypto"),
    ("zlib", "zlib1g-dev", "z"),
    ("spdlog", "libspdlog-dev", ""),
    ("{fmt}", "libfmt-dev", ""),
    ("cxxopts", "libcxxopts-dev", ""),
    ("nlohmann/json", "nlohmann-json3-dev", ""),
    ("RapidJSON", "rapidjson-dev", ""),
    ("libstdc++, libgcc", "libstdc++-*-dev", ""),
)
_WARNINGS = ["-Wall", "-Wextra", "-Wshadow"]
_HIDDEN = ["-O2", "-g0", "-fPIC", "-fno-plt", "-fvisibility=hidden", "-DNDEBUG"]
# The oldest time that a zip file can tell: equal sources make equal wheels.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    files = {str(path.relative_to(_HERE)): path.read_bytes() for path in _package_files()}
    if sys.platform == "linux":
        files[_extension_name()] = _build_extension()
        files.update(_program_files())
        if _PROGRAM in files:
            files.update(_beside_program())
    return _write_wheel(wheel_directory, files)


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """`pip install -e`: the package is the checkout's, and its extension lies in that. It is built anew by another."""
    files = {f"__editable__.{_NAME}.pth": f"{_HERE}\n".encode()}
    if sys.platform == "linux":
        extension = _HERE / _extension_name()
        _put(extension, _build_extension())
        program = _program_files()
        for name, content in program.items():
            _put(_HERE / name, content)
        if program:
            files.update(_beside_program())
    return _write_wheel(wheel_directory, files)


def _put(file: pathlib.Path, content: bytes) -> None:
    """Who has the old one loaded, or runs it, keeps that."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_bytes(content)
    draft.chmod(0o755)
    draft.replace(file)


def _program_files() -> dict[str, bytes]:
    """The agent's program, and what its `run` puts before programs in Python; {} = there is none."""
    named = os.environ.get("STEPWELL_WHEEL_PROGRAM", "")
    program = pathlib.Path(named) if named else _BUILT_PROGRAM
    if named == "off":
        return {}
    try:
        _check_program(program)
    except RuntimeError as error:
        if named:
            raise
        # Built for another machine, say: the package goes without, as where none was built.
        print(f"{error}; this package has no agent's program ({_BUILDS_IT}, or STEPWELL_WHEEL_PROGRAM=FILE takes another "
              "build's; docs/python.md)", file=sys.stderr)  # fmt: skip
        return {}
    _warn_of_age(program)
    hooks = f"{_PROGRAM_FOLDER}/share/stepwell/python"
    return {_PROGRAM: program.read_bytes(),
            f"{hooks}/sitecustomize.py": (_HERE / "site" / "sitecustomize.py").read_bytes(),
            f"{hooks}/stepwell_watch.py": (_HERE / _NAME / "hooks" / "_watch.py").read_bytes()}  # fmt: skip


def _warn(text: str) -> None:
    print(f"stepwell: {text}", file=sys.stderr)


def _warn_of_age(program: pathlib.Path) -> None:
    clients = (folder for folder in (_ROOT / "client").iterdir() if folder.name not in ("python", "web"))
    sources = (path for folder in (_ROOT / "base", _ROOT / "proto", *clients) for path in folder.rglob("*")
               if path.suffix in (".cc", ".h", ".c", ".proto"))  # fmt: skip
    newest = max(sources, key=lambda path: path.stat().st_mtime)
    if program.stat().st_mtime < newest.stat().st_mtime:
        _warn(f"{program} is older than {newest.relative_to(_ROOT)}: {_BUILDS_IT}")


def _beside_program() -> dict[str, bytes]:
    """Its licences, and the environment's command."""
    command = (_HERE / "site" / "program.py").read_bytes()
    return {**_licence_files(), f"{_NAME}-{version()}.data/scripts/stepwell": command}


def _licence_files() -> dict[str, bytes]:
    """As Debian's packages have them."""
    files = {}
    for name, package, _ in INSIDE:
        found = sorted(pathlib.Path("/usr/share/doc").glob(f"{package}/copyright"))
        if not found:
            _warn(f"the licence of {name}, which is inside of the agent's program, is left out: "
                  f"/usr/share/doc/{package}/copyright is not there")  # fmt: skip
        for text in found[-1:]:
            files[f"{_NAME}-{version()}.dist-info/licenses/{text.parent.name}.txt"] = text.read_bytes()
    return files


def _check_program(program: pathlib.Path) -> None:
    """One of another release is no agent of this package's."""
    try:
        done = subprocess.run([str(program), "version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=60)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"stepwell: {program} cannot be run (STEPWELL_WHEEL_PROGRAM=off leaves it out): {error}") from error
    if done.returncode != 0 or version() not in done.stdout.split():
        raise RuntimeError(f"stepwell: {program} is not of version {version()}, it says {done.stdout.strip()!r}: "
                           f"{_BUILDS_IT}, or STEPWELL_WHEEL_PROGRAM=off leaves it out")  # fmt: skip


def _extension_name() -> str:
    return f"{_NAME}/_core{sysconfig.get_config_var('EXT_SUFFIX')}"


def _write_wheel(wheel_directory: str, files: dict[str, bytes]) -> str:
    tag = _tag() if sys.platform == "linux" else "py3-none-any"
    name = f"{_NAME}-{version()}-{tag}.whl"
    info = f"{_NAME}-{version()}.dist-info"
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: {_NAME}\nTag: {tag}\n"
                              f"Root-Is-Purelib: {'true' if tag == 'py3-none-any' else 'false'}\n").encode()
    for legal in ("LICENSE", "NOTICE"):
        files[f"{info}/{legal}"] = (_ROOT / legal).read_bytes()
    _write_zip(pathlib.Path(wheel_directory) / name, files, f"{info}/RECORD")
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    raise RuntimeError("stepwell: no source distribution is made: the extension is built from the whole checkout")


def version() -> str:
    """That of the recorder."""
    header = _RECORDER / "include" / "stepwell" / "recorder.h"
    if not header.is_file():
        raise RuntimeError(f"stepwell: {header} is missing: install from a whole checkout, with pip 21.3 or newer")
    found = re.search(r'^#define STEPWELL_VERSION "([^"]+)"', header.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"stepwell: {header} names no version")
    return found.group(1)


def _package_files() -> list[pathlib.Path]:
    """Without the program that `pip install -e` left there."""
    return sorted(path for path in (_HERE / _NAME).rglob("*") if path.suffix in (".py", ".pyi", ".typed")
                  and _HERE / _PROGRAM_FOLDER not in path.parents)  # fmt: skip


def _tag() -> str:
    """Of this interpreter, and of the glibc that it was built against."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    # cpython-313t-x86_64-linux-gnu: "t" is an interpreter without the GIL, "d" one for debugging.
    words = (sysconfig.get_config_var("SOABI") or "").split("-")
    abi = f"cp{words[1]}" if len(words) > 1 and words[0] == "cpython" else python
    machine = platform.machine()
    libc, number = platform.libc_ver()
    if libc != "glibc":
        return f"{python}-{abi}-linux_{machine}"
    major, minor = number.split(".")[:2]
    return f"{python}-{abi}-manylinux_{major}_{minor}_{machine}"


def _metadata() -> str:
    project = (_HERE / "pyproject.toml").read_text(encoding="utf-8")
    described = re.search(r'^description = "(.*)"$', project, re.MULTILINE)
    assert described is not None
    return (f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {version()}\nSummary: {described.group(1)}\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n"
            + (_HERE / "README.md").read_text(encoding="utf-8"))


def _run(command: list[str]) -> None:
    """A compiler, from the top of the checkout; what it said is told where it fails."""
    try:
        done = subprocess.run(command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
    except FileNotFoundError as error:
        raise RuntimeError(f"stepwell: {command[0]} is missing: the extension needs gcc 10 or newer and the "
                           "headers of Python (Debian: build-essential, python3-dev)") from error
    if done.returncode != 0:
        raise RuntimeError(f"stepwell: {shlex.join(command)} failed:\n{done.stdout}")


def _compiler(variable: str, otherwise: str) -> list[str]:
    given = shlex.split(os.environ.get(variable, otherwise))
    cache = shutil.which("ccache")
    return [cache, *given] if cache and given[:1] != [cache] else given


def _commands(folder: pathlib.Path) -> dict[pathlib.Path, list[str]]:
    """The object -> what compiles it."""
    header = str((_RECORDER / "include").relative_to(_ROOT))
    commands = {}
    for source in sorted((_RECORDER / "src").glob("*.cc")):
        target = folder / f"recorder_{source.stem}.o"
        commands[target] = [*_compiler("CXX", "g++"), "-std=c++20", "-fvisibility-inlines-hidden", *_WARNINGS, *_HIDDEN,
                            "-I.", f"-I{header}", "-c", str(source.relative_to(_ROOT)), "-o", str(target)]
    for source in sorted((_HERE / "core").glob("*.c")):
        target = folder / f"core_{source.stem}.o"
        commands[target] = [*_compiler("CC", "gcc"), "-std=c11", "-D_GNU_SOURCE", *_WARNINGS, *_HIDDEN,
                            "-I.", f"-I{header}", f"-I{sysconfig.get_path('include')}",
                            "-c", str(source.relative_to(_ROOT)), "-o", str(target)]
    return commands


def _build_extension() -> bytes:
    with tempfile.TemporaryDirectory(prefix="stepwell-wheel-") as name:
        folder = pathlib.Path(name)
        commands = _commands(folder)
        workers = int(os.environ.get("STEPWELL_JOBS") or os.cpu_count() or 1)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(_run, commands.values()))
        library = folder / "_core.so"
        # Never unloaded: threads that end would call into it.
        _run([*shlex.split(os.environ.get("CXX", "g++")), "-shared", "-static-libstdc++", "-static-libgcc",
              *map(str, commands), "-o", str(library), f"-Wl,--version-script={_HERE / 'core' / 'exports.map'}",
              "-Wl,-z,nodelete", "-Wl,--gc-sections", "-Wl,--strip-all", "-pthread"])
        return library.read_bytes()


def _write_zip(path: pathlib.Path, files: dict[str, bytes], record: str) -> None:
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
            _add(archive, name, content)
        _add(archive, record, ("".join(lines) + f"{record},,\n").encode())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _ZIP_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    is_run = name.endswith((".so", ".data/scripts/stepwell")) or name == _PROGRAM
    entry.external_attr = (stat.S_IFREG | (0o755 if is_run else 0o644)) << 16
    archive.writestr(entry, content)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))

"""What the examples and hooks tell a stranger to do, done for real in clean roots: `make release-check`.

Each check has a root of its own, a Debian with Python and git and nothing of ours. There is no container engine here,
so the steps of the Containerfile run in a chroot. WHEELS may name a folder with a wheel of torch's CPU build, for a
machine that does not reach torch's own index, BASE a root of debootstrap, and MODEL the model that the action fetches.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUITE = "bookworm"
PACKAGES = ("python3-venv", "python3-pip", "ca-certificates", "openssl", "git")
STUB = 'def add(first, second):\n    """Return the sum of two numbers."""\n    raise NotImplementedError\n'
CONFIG = """\
repos:
- repo: REPO
  rev: REV
  hooks:
    - id: dg-lsp-fill
"""
LOCAL = """\
repos:
- repo: local
  hooks:
    - id: dg-lsp-fill
      name: Fill stubs
      entry: dg-lsp bot --
      language: python
      additional_dependencies: [WHEEL]
      types: [python]
      require_serial: true
      stages: [manual]
"""
HOOK = """\
python3 -m venv /tmp/tool && /tmp/tool/bin/pip install --quiet pre-commit
mkdir /work && cd /work && git init --quiet .
git config --global user.email a@example.com && git config --global user.name a
mv /tmp/shop.py /tmp/config.yaml . && mv config.yaml .pre-commit-config.yaml && git add . && git commit --quiet -m begin
export DG_LSP_CHECKPOINT=embedded
/tmp/tool/bin/pre-commit run dg-lsp-fill --hook-stage manual --files shop.py && exit 3
git diff --exit-code shop.py && exit 4
test -z "$(git status --porcelain | grep -v ' M shop.py')"
"""
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
VARIABLES = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "HTTPS_PROXY",
    "NO_PROXY",
)


class Clean:
    """A root in the folder `place`, in which commands run with a home of their own and little more."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt"):
            shutil.copyfile(f"/{name}", place / name)
        if wheels := os.environ.get("WHEELS"):
            shutil.copytree(wheels, place / "wheels")
        subprocess.run(["mount", "-t", "proc", "proc", place / "proc"], check=True)

    def run(
        self, words: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start a program in the root, with its output in one pipe."""
        links = (
            {"PIP_FIND_LINKS": "/wheels", "UV_FIND_LINKS": "/wheels"}
            if (self.place / "wheels").exists()
            else {}
        )
        kept = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        plain = {"HOME": "/root", "PATH": PATH, "LANG": "C.UTF-8"}
        return subprocess.Popen(
            ["chroot", str(self.place), *words],
            env={**plain, **kept, **links, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def script(self, text: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a script as a CI does; return its output, or raise AssertionError with its end."""
        process = self.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text], environment)
        said, _ = process.communicate()
        assert process.returncode == 0, f"ended with {process.returncode}:\n{said[-3000:]}"
        return said

    def put(self, name: str, text: str) -> None:
        """Write a file of the root."""
        path = self.place / name.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Unmount what was mounted; raise CalledProcessError if a process of the root still runs."""
        subprocess.run(["umount", self.place / "proc"], check=True)


def hook_from_clone(root: Clean) -> str:
    """Install the hook from a clone, by pre-commit, and fill a stub with it."""
    subprocess.run(["git", "clone", "--quiet", "--bare", str(ROOT), str(root.place / "clone")], check=True)
    commit = subprocess.run(
        ["git", "-C", str(root.place / "clone"), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return _hook(root, CONFIG.replace("REPO", "file:///clone").replace("REV", commit))


def hook_from_wheel(root: Clean) -> str:
    """Install the hook from the wheel, by pre-commit, and fill a stub with it."""
    wheel = _wheel()
    shutil.copy(wheel, root.place)
    return _hook(root, LOCAL.replace("WHEEL", f"/{wheel.name}"))


def _hook(root: Clean, config: str) -> str:
    root.put("/tmp/shop.py", STUB)
    root.put("/tmp/config.yaml", config)
    return root.script(HOOK).strip().splitlines()[-1]


def action(root: Clean) -> str:
    """Run the steps of the GitHub action on a repository with a stub, and return the report's summary."""
    text = (ROOT / "examples/github-action/action.yml").read_text(encoding="utf-8")
    wheel = _wheel()
    root.put("/work/shop.py", STUB)
    shutil.copy(wheel, root.place / "work")
    inputs = {**dict(re.findall(r'^  (\S+):\n(?:    .*\n)*?    default: "?([^"\n]*)"?$', text, re.MULTILINE))}
    inputs |= {"keep-if": 'python3 -c "import shop; assert shop.add(2, 3) == 5"', "package": wheel.name}
    inputs |= {"model": os.environ.get("MODEL", inputs["model"])}
    for step in text.partition("\n  steps:\n")[2].split("    - shell: bash\n")[1:]:
        head, _, script = step.partition("      run: |\n")
        named = dict(re.findall(r"^        (\w+): \$\{\{ inputs\.([\w-]+) \}\}$", head, re.MULTILINE))
        given = {variable: inputs[name] for variable, name in named.items()}
        body = textwrap.dedent(re.split(r"^    #", script, flags=re.MULTILINE)[0])
        root.script(f"cd /work\n{body}", {"RUNNER_TEMP": "/tmp", **given})
    summary = json.loads((root.place / "tmp/dg-lsp.json").read_text())["summary"]
    assert summary["tried"] == 1 and "NotImplementedError" not in (root.place / "work/shop.py").read_text(), (
        summary
    )
    return str(summary)


def containerfile(root: Clean) -> str:
    """Run the steps of the Containerfile, and its program as its user until it is ready and ends by SIGTERM."""
    lines = (
        (ROOT / "examples/team/Containerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    )
    steps = [line.partition(" ")[::2] for line in lines if line and not line.startswith("#")]
    environment: dict[str, str] = {}
    user, entry = "0", list[str]()
    for word, rest in steps:
        if word == "COPY":
            (root.place / "source").mkdir()
            archive = subprocess.run(
                ["git", "-C", str(ROOT), "archive", "HEAD"], capture_output=True, check=True
            )
            subprocess.run(["tar", "-xC", str(root.place / "source")], input=archive.stdout, check=True)
        elif word == "RUN":
            root.script(rest, environment)
        elif word in ("ARG", "ENV"):
            name, _, value = rest.partition("=")
            environment[name] = value.replace("$PATH", PATH)
        elif word == "USER":
            user = rest
        elif word == "ENTRYPOINT":
            entry = json.loads(rest)
        else:
            assert word in ("FROM", "EXPOSE"), f"a step that this check does not know: {word}"
    root.script(
        "mkdir /secrets && cd /secrets && dg-lsp serve-engine token alice --tokens tokens && openssl req -x509 "
        "-newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout key.pem -out cert.pem && chown -R 10001 /secrets",
        environment,
    )
    command = shlex.join([*entry, "--checkpoint", "embedded"])
    process = root.run(
        ["setpriv", f"--reuid={user}", "--clear-groups", "sh", "-c", f"cd; exec {command}"], environment
    )
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if "ready on" in line:
            process.terminate()
    assert process.wait() == 0 and "ready on" in said, said[-3000:]
    return said.strip().splitlines()[-1]


def _wheel() -> Path:
    return next((ROOT / "dist").glob("dg_lsp-*.whl"))


CHECKS: dict[str, Callable[[Clean], str]] = {
    "hook from a clone": hook_from_clone,
    "hook from the wheel": hook_from_wheel,
    "action": action,
    "Containerfile": containerfile,
}


def main(names: Sequence[str]) -> int:
    """Run the checks `names`, else all; print a line for each; return 1 if one failed."""
    if os.geteuid() or not shutil.which("debootstrap"):
        print("this needs root and debootstrap, which makes the clean roots")
        return 2
    failed = 0
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        base = Path(os.environ.get("BASE") or f"{folder}/base")
        if not base.exists():
            command = [
                "debootstrap",
                "--variant=minbase",
                f"--include={','.join(PACKAGES)}",
                SUITE,
                str(base),
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name, check in CHECKS.items():
            if names and name not in names:
                continue
            place, began = Path(folder) / "root", time.monotonic()
            subprocess.run(["cp", "-a", str(base), str(place)], check=True)
            root = Clean(place)
            try:
                said = f"passed, {check(root)}"
            except AssertionError as error:
                said, failed = f"failed: {error}", failed + 1
            finally:
                root.close()
            print(f"{name}: {said}, {time.monotonic() - began:.0f} s", flush=True)
            shutil.rmtree(place)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

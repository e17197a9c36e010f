"""Which files are excluded by which globs."""

import time
from pathlib import PurePosixPath

import pytest

from dg_lsp.files import excluded as names
from dg_lsp.files.excluded import excluding, excluding_file, names_of, split_uri
from dg_lsp.settings import Settings


@pytest.mark.parametrize(
    ("path", "glob", "excluded"),
    [
        ("a/b/server.pem", "*.pem", True),
        ("a/b/SERVER.PEM", "*.pem", True),
        ("a.pem/server.py", "*.pem", False),
        ("a/b.py", "a", True),
        ("x/a/c/b.py", "a", True),
        ("a/credentials/b.py", "credentials", False),
        ("a/private/b.py", "a/private", True),
        ("b/a/private/c.py", "a/private", False),
        ("private/b.py", "private/**", True),
        ("private/c/b.py", "private/**", True),
        ("x/private/c/b.py", "**/private/**", True),
        ("private/b.py", "**/private/**", True),
        ("private/b.py", "**/private", True),
        ("private/b.py", "./private/", True),
        ("a/b.py", "a/**/b.py", True),
        ("a/c/d/b.py", "a/**/b.py", True),
        ("a/b.pem", "*.{pem,key}", True),
        ("a/b.key", "**/*.{pem,key}", True),
        ("a/b.py", "*.{pem,key}", False),
        ("privates/b.py", "private/**", False),
        ("cafe\u0301/b.py", "caf\u00e9/", True),
        ("a/xbyz.py", "x?y*.py", True),
        ("ab.py", "a*ab.py", False),
        ("abab.py", "a*ab.py", True),
        ("abcbd", "a*b*d", True),
        ("abd", "a*b*bd", False),
        ("home/.ssh/config.py", ".ssh/", True),
        (".ssh/config.py", ".ssh/", True),
        ("x/.ssh", ".ssh/", False),
        ("deploy/live/keys.py", "deploy/*.py", True),
        ("src/deploy/keys.py", "deploy/*.py", False),
        ("src/deploy/keys.py", "**/deploy/*.py", True),
        ("deploy/keys.py", "**/deploy/*.py", True),
        ("deploy/keys.py", "/deploy/keys.py", True),
        ("/w/deploy/keys.py", "w/deploy/", True),
        ("deploy/a/b.py", "deploy/a/", True),
        ("a[1].py", "a[[]1].py", True),
    ],
)
def test_a_glob_excludes_by_name_by_folder_or_by_path(path: str, glob: str, *, excluded: bool) -> None:
    assert excluding(PurePosixPath(path), ["nothing", glob]) == (glob if excluded else "")


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        "prod.env",
        "server.key",
        "id_ed25519.pub",
        "credentials.py",
        "my_secrets.ts",
        "a.tfvars",
    ],
)
def test_what_holds_secrets_by_custom_is_excluded_by_default(name: str) -> None:
    assert excluding(PurePosixPath("src") / name, Settings().exclude)


@pytest.mark.parametrize(
    "name", ["environment.py", "keys.py", "secretary.py", "envoy.go", "tokens.rs", "test_keys.c"]
)
def test_what_only_sounds_like_it_is_not(name: str) -> None:
    assert not excluding(PurePosixPath("src") / name, Settings().exclude)


def test_a_glob_is_read_once_for_all_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each request asks for each open document: with a thousand of them that took a fifth of a second.
    assert excluding(PurePosixPath("a.py"), ("*.once",)) == ""
    monkeypatch.setattr(names, "_without_braces", lambda _: pytest.fail("read again"))
    assert excluding(PurePosixPath("b.once"), ("*.once",)) == "*.once"


def test_an_address_is_split_whatever_it_is() -> None:
    assert split_uri("file:///w/a%20b.py") == ("file", "/w/a b.py")
    # What is none at all still has a name that a glob may exclude.
    assert split_uri("a://[b/.env") == ("", "a://[b/.env")
    assert excluding(PurePosixPath(split_uri("a://[b/.env")[1]), (".env*",)) == ".env*"


def test_a_file_has_the_names_that_each_folder_gives_it() -> None:
    assert set(names_of("/w/app/lib/a.py", ["/w", "/w/app", "/elsewhere"])) == {
        *("app/lib/a.py", "w/app/lib/a.py", "lib/a.py"),
    }
    assert set(names_of("/w/app/a.py", ["/w/app/"])) == {"a.py", "app/a.py", "w/app/a.py"}
    assert names_of("/w/c#1/.env?x", []) == ("w/c#1/.env?x", "w/c")
    assert set(names_of("\\\\w\\.env", [])) == {"\\\\w\\.env", "w/.env"}


@pytest.mark.parametrize("glob", ["[" * 200_000, "a[!" * 70_000, "[]" * 2 + "[" * 200_000, "{" * 200_000])
def test_no_glob_takes_long(glob: str) -> None:
    began = time.process_time()
    assert excluding_file("/w/a.py", ["/w"], [glob, "*.py"]) == "*.py"
    assert time.process_time() - began < 5

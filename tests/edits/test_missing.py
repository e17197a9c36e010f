"""Imports that new text needs: what is offered, where it is put, and what is left alone."""

import pytest

from dg_lsp.edits.missing import missing_places
from dg_lsp.edits.places import source_of
from dg_lsp.gaps.gap import apply_edit
from dg_lsp.source.bursts import Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.language import known_languages, load_language


def offered(language: str, text: str, others: dict[str, str] | None = None, uri: str = "file:///p/a") -> str:
    """Return the text with what is offered after the text between the `‸` was written; empty if nothing is."""
    before, new, after = text.split("‸")
    data = (before + new + after).encode()
    start, end = len(before.encode()), len((before + new).encode())
    line = before.count("\n")
    bursts = Bursts().begin((before + after).encode(), line).then((start, start, end), (line, line), 0)
    near = [Document(name, language, 1, text.encode()) for name, text in (others or {}).items()]
    document = Document(uri, language, 1, data)
    places = [*missing_places(source_of(document), bursts, -1, near)]
    for _, edit in sorted(places, key=lambda place: -place[1].start):
        document = apply_edit(document, edit)
    return document.text if places else ""


@pytest.mark.parametrize(
    ("language", "head", "use", "wanted"),
    [
        ("python", "import os\nimport sys\n", "re.compile(x)", "import os\nimport re\nimport sys\n"),
        ("python", "import sys\nimport os\n", "re.compile(x)", "import sys\nimport os\nimport re\n"),
        ("python", "from a import b\n", "json.dumps(x)", "import json\n\nfrom a import b\n"),
        (
            "python",
            '"""A."""\n\nfrom __future__ import annotations\n\nimport os\n',
            "Path(x)",
            '"""A."""\n\nfrom __future__ import annotations\n\nimport os\nfrom pathlib import Path\n',
        ),
        (
            "python",
            "import os\r\nimport sys\r\n",
            "re.compile(x)",
            "import os\r\nimport re\r\nimport sys\r\n",
        ),
        (
            "python",
            "from pathlib import (\n    Path,\n)\n",
            "PurePath(x)",
            "from pathlib import (\n    Path,\n    PurePath,\n)\n",
        ),
        (
            "python",
            "import os\n",
            "re.compile(json.dumps(x))",
            "import json\nimport os\nimport re\n",
        ),
        (
            "go",
            'package p\nimport (\n\t"fmt"\n)\n',
            "os.Exit(1)",
            'package p\nimport (\n\t"fmt"\n\t"os"\n)\n',
        ),
        (
            "go",
            'package p\n\nimport "example.org/run"\n',
            "json.Valid(x)",
            'package p\n\nimport "encoding/json"\n\nimport "example.org/run"\n',
        ),
        ("rust", "use std::fs;\n", "let x = Rc::new(1);", "use std::fs;\nuse std::rc::Rc;\n"),
    ],
)
def test_import_of_the_standard_library_is_put_where_it_belongs(
    language: str, head: str, use: str, wanted: str
) -> None:
    bodies = {
        "python": ("def f(x):\n    return ", "\n"),
        "go": ("func f() {\n\t", "\n}\n"),
        "rust": ("fn f() {\n    ", "\n}\n"),
    }
    body, end = bodies[language]
    assert offered(language, f"{head}{body}‸{use}‸{end}") == f"{wanted}{body}{use}{end}"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        # Defined, imported by another name, written in an import, or a name of its own kind.
        ("python", "import os\ndef f(json):\n    return ‸json.dumps(1)‸\n"),
        ("python", "from mine import parser as json\ndef f():\n    return ‸json.dumps(1)‸\n"),
        ("python", "import os\n‸import re‸\n"),
        ("python", "import os\ndef f():\n    import json\n    return ‸json.dumps(1)‸\n"),
        ("python", "import os\n‸__all__ = []‸\n"),
        ("python", "import os\nx.‸json.dumps(1)‸\n"),
        ("python", "import os\nx = '‸json.dumps(1)‸'\n"),
        # A module is neither called nor passed on.
        ("python", "import os\ndef f():\n    return ‸time()‸\n"),
        # In broken code names mean nothing.
        ("python", "import os\ndef f(:\n    return ‸json.dumps(1)‸\n"),
        # What is in the same package, and what all files may use.
        ("java", "package java.util;\nimport a.B;\nclass C {\n    ‸List<B> b;‸\n}\n"),
        ("java", "import java.util.*;\nclass C {\n    ‸List<B> b;‸\n}\n"),
        ("rust", "use std::fs;\nfn f<T>() where T: ‸Unpin‸ {}\n"),
        ("rust", "use std::fs;\n‸#[Path]‸\nfn f() {}\n"),
        ("rust", "use crate::{a::{Arc, B}};\nfn f() { ‸let x = Arc::new(1);‸ }\n"),
        # Without imports, or with another one missing, the text is a part of a file.
        ("go", "package p\nfunc f() {\n\t‸fmt.Println(1)‸\n}\n"),
        ("python", "import os\nre.compile('a')\n‸json.dumps(1)‸\n"),
        # No table, no rule.
        ("c", '#include "a.h"\nint f() { ‸return strlen("a");‸ }\n'),
    ],
)
def test_nothing_is_offered(language: str, text: str) -> None:
    assert offered(language, text) == ""


def test_name_defined_in_another_cell_of_the_notebook_is_left_alone() -> None:
    text, uri = "import os\n‸json.dumps(1)‸\n", "vscode-notebook-cell:/p/a.ipynb#B"
    assert offered("python", text, uri=uri)
    assert not offered("python", text, {"vscode-notebook-cell:/p/a.ipynb#A": "import json\n"}, uri)
    assert offered("python", text, {"vscode-notebook-cell:/p/b.ipynb#A": "import json\n"}, uri)


def test_other_documents_come_before_the_standard_library_and_must_agree() -> None:
    text = "from a import b\ndef f():\n    return ‸Path(1)‸\n"
    own = {"file:///p/b": "from c import Path\n", "file:///p/d": "from c import Path, e\n"}
    assert offered("python", text, own).startswith("from a import b\nfrom c import Path\n")
    assert offered("python", text, own | {"file:///p/f": "from pathlib import Path\n"}).count("from c") == 1
    split = {"file:///p/b": "from c import Path\n", "file:///p/f": "from g import Path\n"}
    assert offered("python", text, split).startswith("from pathlib import Path\n\n")


def test_path_of_rust_that_begins_with_a_module_of_another_file_is_not_taken_from_there() -> None:
    text, other = "use std::fs;\nfn f() { ‸let x = Entry::new();‸ }\n", "mod entry;\nuse entry::Entry;\n"
    assert offered("rust", text, {"file:///p/b": other}) == ""
    assert offered("rust", text, {"file:///p/b": other.replace("mod entry;\n", "")})


@pytest.mark.parametrize("language", known_languages())
def test_table_of_imports_names_each_module_once_and_no_keyword(language: str) -> None:
    found = load_language(language)
    assert len({*found.imports.modules}) == len(found.imports.modules)
    assert not {*found.imports.members} & {*found.keywords}

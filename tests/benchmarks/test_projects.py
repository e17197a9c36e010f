"""The candidates of a measured request: from other files of the project, never from its own or copies of it."""

from benchmarks.unseen.projects import Projects
from dg_lsp.bench.lists import choose
from dg_lsp.context import prompt
from dg_lsp.settings import Settings
from dg_lsp.source.document import read_document

OWN = """def read(path, encoding):
    with open(path, encoding=encoding) as stream:
        content = stream.read()
    return content.splitlines()


def total(numbers):
    result = 0
    for number in numbers:
        result += number
    return result
"""
OTHER = """class Reader:
    def lines(self, place, name, encoding):
        with open(place, encoding=encoding) as stream:
            content = stream.read()
        self.last = name
        self.seen += 1
        self.places.append(place)
        self.names.append(name)
        self.check(place, name)
        yield from content.split()
"""


def test_a_request_holds_what_other_files_say_and_not_its_own(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    own = root / "own.py"
    own.write_text(OWN)
    (root / "other.py").write_text(OTHER)
    (root / "copy.py").write_text(OWN.replace("result", "sum_of_all"))
    projects, found = Projects(tmp_path), []
    for case in choose([read_document(own)], ["rest_of_line"], 20, 1):
        request = projects.request(case, prompt.build(case.document, case.gap, Settings()))
        found += [one.text for one in request.retrieved]
    assert len(projects.index(own)) == 1
    assert found
    assert not any("sum_of_all" in text for text in found)

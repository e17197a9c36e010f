"""What a measured request is told of its project: other files' text, never its own file's."""

from benchmarks.worth_run import Projects, in_blocks
from dg_lsp.bench.lists import choose
from dg_lsp.settings import Settings
from dg_lsp.text.documents.document import read_document
from dg_lsp.text.prompts import prompt

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
    cases = choose([read_document(own)], ["rest_of_line"], 20, 1)
    projects, found = Projects(tmp_path, True), {}
    for case in cases:
        projects.prepare(case)
        request = projects.request(case, prompt.build(case.document, case.gap, Settings()))
        found[case.truth.strip()] = {one.text.strip() for one in request.retrieved}
    (known,) = projects.indexes
    assert len(projects.indexes[known]) == 1
    assert any(texts for texts in found.values())
    assert not any("sum_of_all" in text for texts in found.values() for text in texts)


def test_the_first_blocks_hold_all_kinds(tmp_path):
    own = tmp_path / "own.py"
    own.write_text("".join(f"value_{n} = compute({n}, other={n})\n" for n in range(200)))
    cases = choose([read_document(own)], ["rest_of_line", "expression"], 100, 1)
    first = in_blocks(cases)[:120]
    assert [case.kind for case in first].count("expression") == 60

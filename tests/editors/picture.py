"""Makes docs/images/vscode.png from a real run: VS Code, the extension, the embedded checkpoint filling a body.

Run it by: python -m tests.editors.picture
"""

import shutil
import tempfile
from pathlib import Path

from tests.editors.sandbox import open_sandbox
from tests.editors.vscode import open_vscode

PICTURE = Path(__file__).parents[2] / "docs/images/vscode.png"
SOURCE = '''"""Words and how often they occur."""


def read_words(path):
    """Return the words of the file at path in lower case."""
    with open(path) as source:
        text = source.read()
    words = []
    for line in text.splitlines():
        words.extend(line.lower().split())
    return words


def count_words(path):
    """Return a dict with the number of times that each word of the file at path occurs."""
    counts = {}
    for word in read_words(path):
        @
    return counts
'''


def main() -> None:
    """Open the file, put the cursor into the loop, wait for ghost text and take the picture."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_sandbox(Path(folder), "embedded") as sandbox,
        open_vscode(sandbox, width=960, height=480) as editor,
    ):
        editor.status("ready")
        editor.open("words.py", SOURCE.replace("@", ""), 18, 9)
        editor.type("counts[word] = ")
        print(editor.until("s.ghost")["ghost"])
        PICTURE.parent.mkdir(exist_ok=True)
        shutil.copyfile(editor.shot("picture"), PICTURE)


if __name__ == "__main__":
    main()

"""Makes docs/images/vscode.png from a real run: VS Code, the extension, the embedded checkpoint filling a body.

Run it by: python -m tests.editors.picture
"""

import shutil
import tempfile
from pathlib import Path

from tests.editors.sandbox import open_sandbox
from tests.editors.vscode import open_vscode

PICTURE = Path(__file__).parents[2] / "docs/images/vscode.png"
SOURCE = '''class Cart:
    """Items and what they cost."""

    def __init__(self, items):
        self.items = items
        self.discount = 0

    def add(self, item):
        """Add an item."""
        self.items.append(item)

    def count(self):
        """Return the number of items."""
        return len(self.items)

    def total(self):
        """Return the sum of the prices."""
        total = 0
        for item in self.items:
            total += item.price
        return total

    def show(self):
        """Print the items."""
        @
'''


def main() -> None:
    """Open the file, put the cursor into the loop, wait for ghost text and take the picture."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_sandbox(Path(folder), "embedded") as sandbox,
        open_vscode(sandbox, width=960, height=620) as editor,
    ):
        editor.status("ready")
        editor.open("cart.py", SOURCE.replace("@", ""), 25, 9)
        editor.type("for item in ")
        print(editor.until("s.ghost")["ghost"])
        PICTURE.parent.mkdir(exist_ok=True)
        shutil.copyfile(editor.shot("picture"), PICTURE)


if __name__ == "__main__":
    main()

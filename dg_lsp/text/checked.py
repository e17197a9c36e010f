"""The name of texts that Python checks, and the one filter of their warnings. Knows the standard library only."""

import warnings

# What Python calls a text that is compiled to be checked, in place of a file's name.
CHECKED = "<checked>"


def ignore_warnings() -> None:
    """Ignore Python's warnings about checked texts, such as invalid escapes, from the process's start on.

    `catch_warnings` changes the filters of the whole process for a block, also for other threads.
    """
    warnings.filterwarnings("ignore", module=CHECKED)

"""Where an engine lives: in this process, or in a process of the user's that all windows share. Imports torch late."""

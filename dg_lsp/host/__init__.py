"""Where an engine lives: in this process now; in a process of its own later. Imports torch only when it must."""

"""The systems that are measured. Each runs in a process of its own, so that thread pools and memory do not meet."""

"""The parts of setlistd-move."""

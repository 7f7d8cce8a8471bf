"""The parts of setlistd-convert."""

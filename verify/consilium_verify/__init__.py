"""The verification room: a round, and a whole task, checked again from the public record alone."""

"""The verification room: a library that checks a round, or a whole task, from the public record alone."""

"""Images: reader and profile."""

MOST_PIXELS = 1 << 26  # of one image, before it is brought to size

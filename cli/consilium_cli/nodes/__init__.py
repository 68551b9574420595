"""Commands that hospitals and voters share: they make a home, show it, and stake."""

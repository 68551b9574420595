"""What the commands of hospitals and those of voters share: a home is made, looked at, and a node told of."""

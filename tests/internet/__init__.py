"""A small internet on one machine: hosts as network namespaces, and the processes of a whole network on them."""

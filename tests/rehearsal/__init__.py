"""A whole task on a local chain in the settings of a public test network, with reorganisations in every phase."""

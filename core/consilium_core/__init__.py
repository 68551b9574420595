"""The core room: logs, locks, TOML, units and text that every other room uses. It knows none of them."""

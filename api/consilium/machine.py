"""Checks of a machine for its role."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from consilium_core.defaults import Role
from consilium_core.faults import printed_name
from consilium_operators.doctor.findings import Finding, Level

__all__ = ["Diagnosis", "Finding", "Level", "Role", "doctor"]


@dataclass(frozen=True)
class Diagnosis:
    """A machine's findings for a role. Each has a `level`, words, and a remedy unless it is in order."""

    role: Role
    findings: tuple[Finding, ...]

    @property
    def fit(self) -> bool:
        """False if a fault stops the role from working."""
        return self.count(Level.FAULT) == 0

    def count(self, level: Level) -> int:
        """The number of findings of a level."""
        return sum(one.level is level for one in self.findings)


def doctor(
    role: Role | str, where: str | Path, *, public: str | None = None, authority: str | Path | None = None
) -> Diagnosis:
    """Checks that this machine is fit for a role, in five seconds at most. Changes nothing.

    `where`: a server's configuration file, or a node's home. `public`: an aggregator's or a sponsor's address at the
    proxy, host:port, or host:port/9100 for a SuperLink. `authority`: the file of the certificate that signed the
    proxy's (PEM); by default the system's authorities.

    A fault is a finding, and no error. Raises ValueError for an unknown role, and for another form of `public`.
    """
    from consilium_client.errors import HomeError
    from consilium_core.connectivity import fleet_address
    from consilium_core.errors import ConfigInvalid
    from consilium_operators.doctor.checks import run_checks
    from consilium_operators.doctor.roles import Machine, checks_of, checks_without_settings
    from consilium_server.errors import ServerError

    address = None if public is None else fleet_address(public)
    machine = Machine(Role(role), Path(where).expanduser(), address, None if authority is None else Path(authority))
    found: list[Finding] = []
    try:
        checks = checks_of(machine)
    except (ServerError, ConfigInvalid, HomeError) as error:
        found.append(Finding("configuration", Level.FAULT, str(error), f"do as it says ({printed_name(error)})"))
        checks = checks_without_settings(machine)
    return Diagnosis(machine.role, (*found, *run_checks(checks)))

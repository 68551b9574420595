"""Environments that several of these tests look into, made once."""

from __future__ import annotations

import pytest
from images_driver import Environment, build


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return build("described", tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return build("client-packages", tmp_path_factory.mktemp("client"))

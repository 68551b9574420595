from __future__ import annotations

from images_driver import client as client
from images_driver import server as server

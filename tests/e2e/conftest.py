from __future__ import annotations

from command_line import consilium as consilium
from command_line import own_signals as own_signals
from dashboard_driver import rig as rig
from dashboard_driver import watched as watched
from demo_driver import demo as demo

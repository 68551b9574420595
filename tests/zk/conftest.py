from __future__ import annotations

from zk_support import random as random

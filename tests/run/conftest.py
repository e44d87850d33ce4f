from linear_laboratory import laboratory
from recorded_run import run

__all__ = ["laboratory", "run"]

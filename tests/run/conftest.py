from recorded_run import run

__all__ = ["run"]

from linear_laboratory import laboratory

__all__ = ["laboratory"]

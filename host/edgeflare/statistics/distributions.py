"""Quantiles of distributions: normal, gamma, and Student's t."""

from __future__ import annotations

from statistics import NormalDist

from edgeflare.errors import UserError


def normal_deviate(confidence: float = 0.95) -> float:
    """Return the standard errors to each side of an estimate in an interval of a confidence."""
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


def gamma_quantile(share: float, mean: float, variance: float) -> float:
    """Return the value below which a share of a gamma distribution lies.

    Raises:
        UserError: scipy is not installed.

    """
    require_scipy()
    from scipy.special import gammaincinv  # noqa: PLC0415

    return float(gammaincinv(mean**2 / variance, share)) * variance / mean


def student_quantile(share: float, degrees: int) -> float:
    """Return the value below which a share of Student's t lies, of so many degrees of freedom.

    Raises:
        UserError: scipy is not installed.

    """
    require_scipy()
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, share))


def require_scipy() -> None:
    """Refuse to go on without scipy."""
    try:
        import scipy.special  # noqa: F401, PLC0415
    except ImportError:
        raise UserError(
            "scipy is not installed, which a survey's intervals are computed with: "
            "pip install 'edgeflare[survey]'"
        ) from None

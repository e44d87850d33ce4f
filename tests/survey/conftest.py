import pytest

from constructed_surveys import constructed_document, constructed_facts, drawn_sample
from edgeflare.survey.record.survey_document import SurveyDocument
from linear_laboratory import laboratory

__all__ = ["laboratory"]


@pytest.fixture
def sampled() -> SurveyDocument:
    """A survey without a run, whose rates have intervals."""
    facts = constructed_facts()
    return constructed_document(facts, drawn_sample(facts, 0.3))

from __future__ import annotations

import re
from typing import get_args

from edgeflare.cli.survey_options import Conditions
from edgeflare.conditions.condition_choice import chosen_conditions


def test_the_examples_of_conditions_are_conditions() -> None:
    _, option = get_args(Conditions)
    examples = re.search(r"(\S+) or (\S+);", option.help)
    assert examples
    assert all(chosen_conditions("image", one) for one in examples.groups())

"""The task file that a newcomer begins with: the guide's and the dashboard's are one, private, and learn."""

from __future__ import annotations

import tomllib
from pathlib import Path

from consilium_chain.tasks.concerns import Rule
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.examples import joined
from consilium_client.data.standardise import public_sums
from consilium_lab.demo.datasets import deal_wdbc, examples_of

from bench.client import learning_rounds as rounds

ROOT = Path(__file__).parents[2]

EXAMPLE = ROOT / "dashboard/src/propose/example.toml"


def test_guide_and_dashboard_begin_with_one_task_file() -> None:
    _, _, rest = (ROOT / "docs/operator.md").read_text().partition("```toml\n")
    assert rest.partition("```")[0] == EXAMPLE.read_text()


def test_example_is_private_and_nothing_is_to_be_thought_over_about_privacy() -> None:
    spec = parse_task_spec(EXAMPLE.read_bytes())
    assert spec.privacy is not None
    assert spec.privacy.epsilon == 8
    concerns = {one.rule for one in estimate(spec).concerns}
    assert concerns.isdisjoint({Rule.NO_PRIVACY, Rule.HIGH_EPSILON, Rule.HIGH_DELTA, Rule.NO_MASKS})


def test_example_learns_with_its_noise() -> None:
    """Its sections, over real rows of six hospitals: 63 % are of the larger class."""
    data = deal_wdbc(6, 5, 0)
    spec = TaskSpec.model_validate({**tomllib.loads(EXAMPLE.read_text()), "data": data.schema.model_dump()})
    hospitals, held_out = examples_of(data.hospitals, data.schema), joined(examples_of(data.held_out, data.schema))
    sums = public_sums(data.schema)
    model = rounds.play(spec, hospitals, sums, 0, rounds.privately(spec, rounds.plans(spec, hospitals)))
    assert rounds.tested(spec, model, sums, held_out)["accuracy"] > 0.85
